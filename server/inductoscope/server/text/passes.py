"""The passes that changed a graph, as a table for each graph and phase."""

from __future__ import annotations

from collections.abc import Iterator

from rich import box
from rich.console import RenderableType
from rich.table import Table

from inductoscope.protocol.report import PassFact, Phase, TargetReport
from inductoscope.server import words
from inductoscope.server.tally import is_first_version
from inductoscope.server.text.blocks import gap, indented
from inductoscope.server.text.view import Part, View


def tables(report: TargetReport, view: View) -> Iterator[RenderableType]:
    """A table for each graph of a first version; passes over backward graphs where those were asked for."""
    by_graph: dict[tuple[str, Phase], list[PassFact]] = {}
    for fact in report.passes:
        if is_first_version(fact.graph) and (fact.phase is Phase.FORWARD or view.has(Part.BACKWARD)):
            by_graph.setdefault((fact.graph, fact.phase), []).append(fact)
    if by_graph:
        yield gap()
    for (graph, phase), facts in by_graph.items():
        backward = "backward of " if phase is Phase.BACKWARD else ""
        yield indented(_table(f"passes that changed the {backward}graph {graph}, or found patterns", facts, report))


def _table(title: str, facts: list[PassFact], report: TargetReport) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("stage", no_wrap=True)
    table.add_column("pass", overflow="fold", ratio=3)
    table.add_column("operators", no_wrap=True)
    table.add_column("patterns by line", overflow="fold", ratio=4)
    for fact in facts:
        inside = f" (in {fact.subgraph})" if fact.subgraph else ""
        patterns = "; ".join(words.pattern(pattern, report.file) for pattern in fact.patterns)
        counts = words.change(fact.ops_before, fact.ops_after) if fact.changed else "no change"
        table.add_row(fact.stage.value, fact.name + inside, counts, patterns)
    return table
