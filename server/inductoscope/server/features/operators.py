"""What a line became in the graphs: its operators, what of it waits for the backward pass, what is computed again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from inductoscope.protocol.report import (
    FxGraph,
    Phase,
    Recomputation,
    RecomputeReason,
    SavedTensor,
    Stage,
    TargetReport,
)
from inductoscope.server import fx_code, words
from inductoscope.server.features import artifacts, graph_documents
from inductoscope.server.features.markup import Block, Heading, Link, Links, Points
from inductoscope.server.snapshot import TargetView
from inductoscope.server.tally import is_first_version

MOST_LISTED = 8
"""Different operators of one stage that are named."""

_STAGES = (
    ("captured", Stage.CAPTURED, Phase.FORWARD),
    ("after Inductor's passes", Stage.LOWERED, Phase.FORWARD),
    ("backward, after Inductor's passes", Stage.LOWERED, Phase.BACKWARD),
)
_ASKED = {
    RecomputeReason.PARTITIONER: "torch found that cheaper than keeping the result",
    RecomputeReason.CHECKPOINT: "the program asks for it (checkpoint)",
}


def cards(view: TargetView, report: TargetReport, path: str, line: int) -> Iterator[Block]:
    """Blocks for a line of the text that was compiled; about the first version of each function."""
    points = tuple(_stages(report, path, line))
    if points:
        yield Heading("Operators of this line")
        yield Points(points)
        graphs = {graph.graph for graph in report.fx_graphs if _operators([graph], path, line)}
        documents = [one for one in graph_documents.listed(report) if one.parts[0].graph in graphs]
        yield Links(tuple(Link(one.title, artifacts.graph_address(view, one).uri) for one in documents))
    kept = [one for one in report.saved if _here(one, path, line)]
    if kept:
        yield Heading("Kept for the backward pass")
        yield Points(tuple(_shortened(_kept(one) for one in kept)))
    again = [one for one in report.recomputed if _here(one, path, line)]
    if again:
        yield Heading("Computed again in the backward pass")
        yield Points(tuple(_again(again)))


def _stages(report: TargetReport, path: str, line: int) -> Iterator[str]:
    for name, stage, phase in _STAGES:
        graphs = [graph for graph in report.fx_graphs if (graph.stage, graph.phase) == (stage, phase)]
        found = list(_shortened(_operators(graphs, path, line)))
        if found:
            yield f"{name}: {', '.join(found)}"


def _operators(graphs: Iterable[FxGraph], path: str, line: int) -> list[str]:
    return [
        fx_code.operator(node) + (f" {node.text}" if node.text else "")
        for graph in graphs
        if is_first_version(graph.graph)
        for node in graph.nodes
        if (node.file, node.line) == (path, line) and fx_code.is_call(node)
    ]


def _kept(saved: SavedTensor) -> str:
    size = f", {words.size(saved.bytes)}" if saved.bytes is not None else ""
    view = f", a view of {saved.base}" if saved.base is not None else ""
    return f"{saved.text}{size}{view} ({saved.op or saved.name})"


def _again(found: list[Recomputation]) -> Iterator[str]:
    for reason, why in _ASKED.items():
        named = _shortened(f"{one.op}{' (a view)' if one.view else ''}" for one in found if one.reason is reason)
        if listed := ", ".join(named):
            yield f"{listed}: {why}"


def _here(one: SavedTensor | Recomputation, path: str, line: int) -> bool:
    return (one.file, one.line) == (path, line) and is_first_version(one.graph)


def _shortened(texts: Iterable[str]) -> Iterator[str]:
    """Different texts, with how often each occurs; the first few of them."""
    counts: dict[str, int] = {}
    for text in texts:
        counts[text] = counts.get(text, 0) + 1
    for text, times in list(counts.items())[:MOST_LISTED]:
        yield f"{text} x{times}" if times > 1 else text
    if len(counts) > MOST_LISTED:
        yield f"and {len(counts) - MOST_LISTED} more"
