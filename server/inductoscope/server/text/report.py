"""A target's report as text for people: what `inductoscope check` prints for each.

Builds rich renderables and prints nothing.  Works from the report alone, but for the source lines under findings, which
a function that it is given provides.
"""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.text import Text

from inductoscope.protocol.report import (
    Recompile,
    Rung,
    Status,
    TargetReport,
)
from inductoscope.server import missed_fusion, sizes, tally, whole_calls, words
from inductoscope.server import phases as timing
from inductoscope.server.text import (
    assembly,
    benchmark,
    caches,
    findings,
    graphs,
    guards,
    kernels,
    passes,
    phases,
    training,
)
from inductoscope.server.text.blocks import counted, gap, paragraph
from inductoscope.server.text.view import Part, View

_INPUT_SETS = 8
"""Calls whose arguments are listed."""

_STATUS = {Status.COMPILED: "bold green", Status.PARTIAL: "bold yellow", Status.FAILED: "bold red"}


def target(report: TargetReport, view: View) -> Group:
    """Everything about one target."""
    return Group(*_target(report, view), gap())


def _target(report: TargetReport, view: View) -> Iterator[RenderableType]:
    yield from _header(report, view)
    apart = missed_fusion.findings(report, view.source_line) if view.has(Part.FUSION) else ()
    yield from findings.listed((*report.findings, *apart), view)
    if view.has(Part.GUARDS):
        yield from guards.other_sizes(report)
        for recompile in report.recompiles:
            yield gap()
            yield from _recompile(recompile, view)
    if view.has(Part.GRAPHS):
        yield from graphs.listed(report, view)
    if view.has(Part.PASSES):
        yield from passes.tables(report, view)
    yield from kernels.tables(report, view)
    if view.has(Part.BACKWARD):
        yield from training.tables(report, view)
    if view.has(Part.KERNELS):
        yield from kernels.sources(report, view)
    yield from assembly.shown(report, view)
    if view.has(Part.CACHES):
        yield from caches.cache_facts(report, view)
    if view.has(Part.PHASES):
        yield from phases.phase_times(report, view)
    if report.benchmark is not None:
        yield from (gap(), *benchmark.benchmarks(report))


def title(report: TargetReport, view: View) -> Text:
    """Name, place, device and status of a target."""
    status = report.status.value
    device = f"{words.device(report.device)}  " if report.rung is not Rung.SCAN else ""
    where = f"  {view.place(report.file, report.line)}  {device}"
    return Text.assemble((report.name, "bold"), where, (status, _STATUS.get(report.status, "bold")))


def _header(report: TargetReport, view: View) -> Iterator[RenderableType]:
    yield title(report, view)
    if cached := words.cached(report):
        yield paragraph(f"cached: {cached}; --no-cache runs it again", "dim", 2)
    if report.graphs:
        yield paragraph(words.totals(report), indent=2)
    if unchanged := timing.lowerings(report):
        yield paragraph(f"kernels: {unchanged}", "dim", 2)
    for expected in whole_calls.lines(report):
        yield paragraph(expected, indent=2)
    step = tally.training(report)
    if step is not None:
        yield paragraph(words.training(step), indent=2)
    if report.message is not None and not _says_below(report, report.message):
        yield paragraph(report.message, indent=2)
    listed = (f"{', '.join(one.args) or 'no arguments'} ({one.origin})" for one in report.inputs[:_INPUT_SETS])
    for inputs, times in counted(listed):
        yield paragraph(f"inputs: {inputs}{f', {times} times' if times > 1 else ''}", "dim", 2)
    if len(report.inputs) > _INPUT_SETS:
        yield paragraph(f"inputs: {words.count(len(report.inputs) - _INPUT_SETS, 'more set')}", "dim", 2)
    if other := sizes.summary(report):
        yield paragraph(f"other sizes: {other}", "dim", 2)
    for note in report.notes:
        yield paragraph(f"note: {note}", indent=2)


def _says_below(report: TargetReport, message: str) -> bool:
    """Whether a finding, or the benchmark, says the same."""
    refused = report.benchmark.refused if report.benchmark is not None else None
    return message in {refused, *(finding.message for finding in report.findings)}


def _recompile(recompile: Recompile, view: View) -> Iterator[RenderableType]:
    called = f", input set {recompile.input_set + 1}" if recompile.input_set is not None else ""
    where = view.place(recompile.file, recompile.line)
    yield paragraph(f"recompile {recompile.compile_id} of {recompile.function} ({where}){called}", "bold", 2)
    for guard in recompile.guards:
        made = f" (guard made at {view.place(guard.file, guard.line)})" if guard.file and guard.line else ""
        yield paragraph(f"{guard.source} {guard.kind}: expected {guard.expected}, actual {guard.actual}{made}")
        yield paragraph(guard.text, "dim", 6)
