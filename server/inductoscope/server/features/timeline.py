"""Where the time of a run went: a section of the report, and a card on the line where a compiled function begins."""

from __future__ import annotations

from collections.abc import Iterator

from inductoscope.protocol.report import TargetReport
from inductoscope.server import phases, words
from inductoscope.server.features.markup import Block, Code, Heading, Note, Points

LISTED = 6
"""Compilations of one function that a hover names."""

_NAME_WIDTH = 44


def document(report: TargetReport) -> Iterator[Block]:
    """The blocks of the page."""
    yield Heading(f"Timeline of {report.name}")
    if phases.total_ms(report):
        yield from section(report)
    else:
        yield Note("Nothing was timed.")


def section(report: TargetReport) -> Iterator[Block]:
    """The tree of phases; nothing where none were timed."""
    total = phases.total_ms(report)
    if not total:
        return
    yield Heading(f"Where the time went: {phases.time(total)} in the worker")
    lines = (
        f"{'  ' * row.depth + row.name:{_NAME_WIDTH}} {phases.time(row.ms):>9} {row.share:>5.1%}"
        for row in phases.rows(report)
    )
    yield Code("text", "\n".join(lines))
    if compiled := phases.compilations(report):
        places = {graph.id: (graph.file, graph.line) for graph in report.graphs}
        yield Points(
            tuple(f"{one.graph}{_at(report, places.get(one.graph))} {phases.described(one)}" for one in compiled)
        )
    if unchanged := phases.lowerings(report):
        yield Note(f"{unchanged}.")
    if always := tuple(phases.always_lowered(report)):
        yield Points(always)
    yield Note(f"One run, with everything observed: observing itself took {phases.time(phases.ours_ms(report))}.")


def _at(report: TargetReport, place: tuple[str, int] | None) -> str:
    return f" ({words.lines([place], report.file)})" if place is not None else ""


def card(report: TargetReport, path: str, line: int) -> Iterator[Block]:
    """How long the function that begins on the line took to compile, version by version."""
    here = {graph.id for graph in report.graphs if (graph.file, graph.line) == (path, line)}
    if (report.file, report.line) == (path, line):
        here |= {graph.id for graph in report.graphs if graph.function == report.name.rpartition(".")[2]}
    compiled = [one for one in phases.compilations(report) if one.graph in here]
    if not compiled:
        return
    whole = sum(one.ms for one in compiled)
    yield Heading(f"Compiling took {phases.time(whole)} here")
    more = [f"and {len(compiled) - LISTED} more"] if len(compiled) > LISTED else []
    yield Points((*(f"{one.graph} {phases.described(one)}" for one in compiled[:LISTED]), *more))
