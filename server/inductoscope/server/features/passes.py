"""Which passes changed a graph: a section of the report, and a card on the lines whose operators were rewritten."""

from __future__ import annotations

from collections.abc import Iterator

from inductoscope.protocol.report import PassFact, Phase, TargetReport
from inductoscope.server import words
from inductoscope.server.features.markup import Block, Heading, Points
from inductoscope.server.tally import is_first_version

LISTED = 8
"""Patterns of a line that a hover names."""


def section(report: TargetReport) -> Iterator[Block]:
    """The passes that changed something in the first version of each graph, in order."""
    facts = [fact for fact in report.passes if fact.changed and is_first_version(fact.graph)]
    if facts:
        yield Heading(f"Passes that changed a graph ({len(facts)})")
        yield Points(tuple(_line(fact, report.file) for fact in facts))


def card(report: TargetReport, path: str, line: int) -> Iterator[Block]:
    """The patterns in which operators of the line were found, in passes that changed the graph."""
    found = [
        f"{words.pattern(pattern, path)}, {fact.stage.value}{_backward(fact)}"
        for fact in report.passes
        for pattern in fact.patterns
        if fact.changed and any((place.file, place.line) == (path, line) for place in pattern.lines)
    ]
    listed = list(dict.fromkeys(found))
    if listed:
        yield Heading("Patterns that Inductor found here")
        more = [f"and {len(listed) - LISTED} more"] if len(listed) > LISTED else []
        yield Points((*listed[:LISTED], *more))


def _line(fact: PassFact, own: str) -> str:
    inside = f" in {fact.subgraph}" if fact.subgraph else ""
    patterns = "; ".join(words.pattern(pattern, own) for pattern in fact.patterns)
    operators = words.change(fact.ops_before, fact.ops_after)
    return f"{fact.graph} {fact.stage.value}{_backward(fact)}: {fact.name}{inside}, {operators} operators" + (
        f": {patterns}" if patterns else ""
    )


def _backward(fact: PassFact) -> str:
    return " of the backward graph" if fact.phase is Phase.BACKWARD else ""
