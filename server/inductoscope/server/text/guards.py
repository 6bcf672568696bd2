"""Guards as text: for each compiled version what it is held to, by line; then dimensions, then what was asked about.

Builds rich renderables from the report alone and prints nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from rich.console import Group, RenderableType
from rich.text import Text

from inductoscope.protocol.report import (
    Dimension,
    DimensionState,
    GuardFact,
    GuardFailure,
    Probe,
    Reuse,
    TargetReport,
    WhatIf,
)
from inductoscope.server import sizes, words
from inductoscope.server.text.blocks import Code, gap, indented, paragraph
from inductoscope.server.text.view import Part, View

_OF_GUARDS = (
    "inputs",
    "graphs",
    "recompiles",
    "recompile_limit",
    "specializations",
    "guards",
    "dimensions",
    "what_if",
    "probes",
    "notes",
)
_OUTCOME = {
    Reuse.REUSED: "bold green",
    Reuse.RECOMPILES: "bold yellow",
    Reuse.FAILS: "bold red",
    Reuse.UNKNOWN: "bold red",
}


_SIZE = re.compile(r"\.(?:size|stride)\(\).*")
_MOST_NAMES = 8
"""Arguments and attributes that are named."""


@dataclass(frozen=True)
class Selection:
    """Which guards are wanted: those made on a line of the file, those about an argument; None for any."""

    line: int | None = None
    argument: str | None = None

    def of(self, report: TargetReport) -> TargetReport:
        """The report with only the guards and dimensions that are wanted."""
        return replace(
            report,
            guards=tuple(guard for guard in report.guards if self._wants_guard(guard, report.file)),
            dimensions=tuple(one for one in report.dimensions if self._wants_dimension(one, report.file)),
            probes=tuple(one for one in report.probes if self._wants_probe(one, report.file)),
        )

    def nothing(self, report: TargetReport) -> str:
        """What to say where none of the report's guards is wanted: which ones there are to ask for."""
        told = [guard for guard in report.guards if not guard.internal]
        if not told:
            return "no guards"
        on_line, about = replace(self, argument=None), replace(self, line=None)
        if self.line is not None and not on_line.of(report).guards:
            here = [(guard.file, guard.line) for guard in told if guard.file == report.file and guard.line]
            made = f"those of this file come from {words.lines(here, report.file)}" if here else "no line is known"
            return f"no guard was made on line {self.line}; {made}"
        if self.argument is not None and not about.of(report).guards:
            names = list(dict.fromkeys(_SIZE.sub("", guard.source) for guard in told))
            more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
            return f"no guard is on {self.argument}; there are guards on {', '.join(names[:_MOST_NAMES])}{more}"
        return f"no guard on {self.argument} was made on line {self.line}"

    def _wants_guard(self, guard: GuardFact, file: str) -> bool:
        here = self.line is None or (guard.file, guard.line) == (file, self.line)
        about = self.argument is None or self._is_about(guard.source) or self._is_about(guard.text or "")
        return here and about

    def _wants_dimension(self, dimension: Dimension, file: str) -> bool:
        lines = {(limit.file, limit.line) for limit in dimension.limits}
        here = self.line is None or (file, self.line) in lines
        return here and (self.argument is None or self._is_about(dimension.source))

    def _wants_probe(self, probe: Probe, file: str) -> bool:
        here = self.line is None or (file, self.line) == (probe.file, probe.line)
        return here and (self.argument is None or any(map(self._is_about, (probe.source, *probe.together))))

    def _is_about(self, text: str) -> bool:
        return re.search(rf"(?<![\w.'\"]){re.escape(self.argument or '')}(?!\w)", text) is not None


def only_guards(report: TargetReport) -> TargetReport:
    """The report without the facts that say nothing of when a compiled version is used again."""
    kept = {name: getattr(report, name) for name in _OF_GUARDS}
    return TargetReport(
        report.file, report.name, report.line, report.device, report.rung, report.status, report.message, **kept
    )


def target(report: TargetReport, view: View, wanted: Selection) -> Group:
    """The guards of one target that are wanted."""
    return Group(*_target(wanted.of(report), view, wanted.nothing(report)), gap())


def _target(report: TargetReport, view: View, nothing: str) -> Iterator[RenderableType]:
    where = f"  {view.place(report.file, report.line)}  {words.device(report.device)}  {report.status.value}"
    yield Text.assemble((report.name, "bold"), where)
    if report.message is not None:
        yield paragraph(report.message, indent=2)
    functions = {graph.id: graph.function for graph in report.graphs}
    told = (*(guard.compile_id for guard in report.guards), *(one.compile_id for one in report.dimensions))
    versions = dict.fromkeys((*functions, *told))
    for version in versions:
        guards = [guard for guard in report.guards if guard.compile_id == version]
        dimensions = [one for one in report.dimensions if one.compile_id == version]
        if guards or dimensions:
            yield gap()
            of = f" of {functions[version]}" if version in functions else ""
            yield paragraph(f"compiled version {version}{of} is used again as long as", "bold", 2)
            yield from _guards(guards, view)
            yield from _dimensions(dimensions, view)
    if not report.guards and not report.dimensions:
        yield paragraph(nothing, indent=2)
    yield from other_sizes(report)
    for asked in report.what_if:
        yield gap()
        yield from _asked(asked, view)


def other_sizes(report: TargetReport) -> Iterator[RenderableType]:
    """What other sizes of the inputs would do, and which were not tried."""
    if report.probes or report.untried:
        yield gap()
        yield paragraph("with other sizes", "bold", 2)
        yield from map(paragraph, sizes.sentences(report))


def _guards(guards: list[GuardFact], view: View) -> Iterator[RenderableType]:
    shown = guards if view.has(Part.ALL) else [guard for guard in guards if not guard.internal]
    by_line: dict[tuple[str, int], list[GuardFact]] = {}
    for guard in sorted(shown, key=lambda one: (one.file is None, one.file or "", one.line or 0)):
        by_line.setdefault((guard.file or "", guard.line or 0), []).append(guard)
    for (file, line), here in by_line.items():
        if file:
            yield Code(Text.assemble((f"{view.place(file, line)}  ", "cyan"), view.source_line(file, line).strip()), 4)
        else:
            yield paragraph("no line is known", "cyan")
        yield from (paragraph(text, indent=6) for text in dict.fromkeys(_described(here)))
    if len(shown) < len(guards):
        yield paragraph(f"and {len(guards) - len(shown)} that are torch's own (-v shows them)", "dim")


def _described(guards: Iterable[GuardFact]) -> Iterator[str]:
    """One line for each source whose parts are compared with known values, one for each other guard."""
    parts: dict[str, list[str]] = {}
    for guard in guards:
        if guard.text is None:
            parts.setdefault(guard.source, []).append(f"{guard.kind} {guard.expected}")
    yield from (f"{source}: {', '.join(found)}" for source, found in parts.items())
    for guard in guards:
        if guard.text is not None:
            yield guard.text


def _dimensions(dimensions: list[Dimension], view: View) -> Iterator[RenderableType]:
    if dimensions:
        yield paragraph("dimensions", "cyan")
    for one in dimensions:
        yield paragraph(f"{one.source}.shape[{one.dim}]: {_became(one)}", indent=6)
        for limit in one.limits:
            made = f"  {view.place(limit.file, limit.line)}" if limit.file and limit.line else ""
            yield paragraph(f"{limit.text}{made}", "dim", 8)


def _became(one: Dimension) -> str:
    if one.state is not DimensionState.DYNAMIC:
        return f"{one.state.value}, {one.size}"
    low, high = one.minimum if one.minimum is not None else 0, one.maximum
    bounds = f"from {low}" + (f" to {high}" if high is not None else " on")
    multiple = f", multiples of {one.multiple_of}" if one.multiple_of else ""
    return f"dynamic ({one.symbol}), {bounds}{multiple}; compiled with {one.size}"


def _asked(asked: WhatIf, view: View) -> Iterator[RenderableType]:
    head = Text.assemble((", ".join(asked.args) or "no arguments", "bold"), "  ")
    head.append(asked.outcome.value, _OUTCOME[asked.outcome])
    yield indented(head)
    yield paragraph(asked.message)
    if asked.file and asked.line:
        yield paragraph(f"the function: {view.place(asked.file, asked.line)}", "dim")
    failures = dict.fromkeys(_failure(guard, view) for guard in asked.guards)
    yield from (paragraph(text, indent=6) for text in failures)


def _failure(guard: GuardFailure, view: View) -> str:
    actual = f", actual {guard.actual}" if guard.actual is not None else ""
    made = f"  {view.place(guard.file, guard.line)}" if guard.file and guard.line else ""
    if guard.expected in (None, guard.text):
        return f"{guard.text}{actual}{made}"
    return f"{guard.source} {guard.kind}: expected {guard.expected}{actual}{made}"
