"""What compiled code is held to, as a document: guards and dimensions of each version by line, and other sizes."""

from __future__ import annotations

from collections.abc import Iterator

from inductoscope.protocol.report import Dimension, DimensionState, GuardFact, TargetReport
from inductoscope.server import sizes, words
from inductoscope.server.features.markup import Block, Heading, Note, Points, Words

_WORDS = {
    DimensionState.STATIC: "static",
    DimensionState.DYNAMIC: "dynamic",
    DimensionState.PINNED: "pinned",
}


def document(report: TargetReport) -> Iterator[Block]:
    """The blocks of the document."""
    yield Heading(f"Guards of {report.name}")
    yield Words(f"{words.device(report.device)}: when what is compiled is used again")
    versions = dict.fromkeys(
        (*(one.compile_id for one in report.guards), *(one.compile_id for one in report.dimensions))
    )
    if not versions:
        yield Note("Nothing was compiled, or this torch does not tell its guards.")
    for version in versions:
        yield from _version(report, version)
    if report.probes or report.untried:
        yield Heading("Other sizes of the inputs")
        yield Points(tuple(sizes.sentences(report)))


def _version(report: TargetReport, version: str) -> Iterator[Block]:
    guards = [guard for guard in report.guards if guard.compile_id == version]
    told = [guard for guard in guards if not guard.internal]
    functions = {graph.id: graph.function for graph in report.graphs}
    function = functions.get(version)
    yield Heading(f"Version {version}{f' of {function}' if function else ''}: {words.count(len(told), 'guard')}")
    if told:
        yield Points(tuple(dict.fromkeys(_guard(guard, report.file) for guard in told)))
    dimensions = [one for one in report.dimensions if one.compile_id == version]
    if dimensions:
        yield Heading(f"Dimensions in version {version}")
        yield Points(tuple(_dimension(one, report.file) for one in dimensions))
    if len(guards) > len(told):
        yield Note(f"and {words.count(len(guards) - len(told), 'guard')} on torch's own state")


def _guard(guard: GuardFact, own: str) -> str:
    text = guard.text if guard.text is not None else f"{guard.source}: {guard.kind} {guard.expected}"
    return text + _made_at(guard.file, guard.line, own)


def _dimension(one: Dimension, own: str) -> str:
    is_a = f"{one.source}.shape[{one.dim}] = {one.size}: {_WORDS[one.state]}"
    bounds = []
    if one.minimum is not None:
        bounds.append(f"at least {one.minimum}")
    if one.maximum is not None:
        bounds.append(f"at most {one.maximum}")
    if one.multiple_of is not None and one.multiple_of > 1:
        bounds.append(f"a multiple of {one.multiple_of}")
    limits = [f"{limit.text}{_made_at(limit.file, limit.line, own)}" for limit in one.limits]
    return "; ".join([", ".join([is_a, *bounds]), *limits])


def _made_at(file: str | None, line: int | None, own: str) -> str:
    return f" ({words.lines([(file, line)], own)})" if file is not None and line is not None else ""
