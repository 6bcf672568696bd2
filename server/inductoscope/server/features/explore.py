"""All facts of a document, for panels and trees: see `inductoscope/explore` in `docs/lsp-extensions.md`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from inductoscope.protocol import codec
from inductoscope.protocol.report import TargetReport
from inductoscope.server import freshness
from inductoscope.server.assembly.line_tables import LineTable
from inductoscope.server.features import artifacts, graph_documents, kernel_documents
from inductoscope.server.features.artifacts import Address
from inductoscope.server.features.graph_documents import GraphDocument
from inductoscope.server.features.kernel_documents import KernelDocument
from inductoscope.server.snapshot import Snapshot, TargetView


def explore(snapshot: Snapshot, path: str) -> dict[str, Any]:
    """The answer for an open file."""
    return {"targets": [_target(snapshot, view, path) for view in snapshot.targets_in(path)]}


def _target(snapshot: Snapshot, view: TargetView, path: str) -> dict[str, Any]:
    result = view.good or view.failed
    moved = {}
    if result is not None:
        lines = {line for file, line in freshness.mentioned(result.report) if file == path}
        places = {line: snapshot.now_at(result, path, line) for line in sorted(lines)}
        moved = {str(line): now for line, now in places.items() if now != line}
    return {
        "name": view.target.name,
        "line": snapshot.line_of(view),
        "stale": result is not None and snapshot.is_stale(result),
        "age_s": None if result is None else round(snapshot.now - result.at, 1),
        "report": None if result is None else codec.to_json(_without_nodes(result.report)),
        "lines": moved,
        "documents": [] if result is None else [_document(view, one) for one in kernel_documents.listed(result.report)],
        "graphs": [] if result is None else [_graph(view, one) for one in graph_documents.listed(result.report)],
    }


def _without_nodes(report: TargetReport) -> TargetReport:
    """The nodes of graphs are the largest part of a report, and stand in documents of their own."""
    return replace(report, fx_graphs=tuple(replace(graph, nodes=()) for graph in report.fx_graphs))


def _graph(view: TargetView, shown: GraphDocument) -> dict[str, Any]:
    whole = shown.parts[0]
    return {
        "uri": artifacts.graph_address(view, shown).uri,
        "graph": whole.graph,
        "stage": whole.stage.value,
        "phase": whole.phase.value,
        "title": shown.title,
        "ops": whole.ops,
    }


def lines(snapshot: Snapshot, address: Address) -> dict[str, Any]:
    """Lines of a kernel's document: those of the kernel's source, and those of the program that these compute.

    The program's lines are those of its documents now.
    """
    view = snapshot.find(address.path, address.target)
    result = view.good or view.failed if view else None
    shown = kernel_documents.find(result.report, address.name) if result is not None else None
    if result is None or shown is None:
        return {"kernel": {}, "ptx": {}, "model": {}}
    model = {
        str(line): [
            {"file": place.file, "line": now}
            for place in places
            if (now := snapshot.now_at(result, place.file, place.line)) is not None
        ]
        for line, places in kernel_documents.model_lines(shown.kernel).items()
    }
    found = kernel_documents.lines(shown, result.report)
    return {"kernel": _keyed(found.kernel), "ptx": _keyed(found.ptx), "model": model}


def _keyed(table: LineTable) -> dict[str, int]:
    return {str(line): at for line, at in table.items()}


def _document(view: TargetView, shown: KernelDocument) -> dict[str, Any]:
    return {
        "uri": artifacts.kernel_address(view, shown).uri,
        "kernel": shown.kernel.name,
        "graph": shown.kernel.graph,
        "stage": shown.stage,
        "likely": shown.config is None or shown.config.likely,
        "revision": shown.revision,
    }
