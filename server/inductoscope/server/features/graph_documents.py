"""FX graphs as documents: one for each graph and stage, as Python code with the program's line after each operator.

Knows no addresses and no LSP types.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePath

from inductoscope.protocol.report import FxGraph, Phase, Stage, TargetReport
from inductoscope.server import fx_code, words

_NAMES = {
    Stage.CAPTURED: "captured",
    Stage.JOINT: "joint",
    Stage.PARTITIONED: "before passes",
    Stage.LOWERED: "after passes",
}


@dataclass(frozen=True)
class GraphDocument:
    """A graph at one stage; `parts` are the graph and the bodies that its operators call."""

    name: str
    title: str
    parts: tuple[FxGraph, ...]


def listed(report: TargetReport) -> tuple[GraphDocument, ...]:
    """All documents, in the order of the report."""
    parts: dict[str, list[FxGraph]] = {}
    for graph in report.fx_graphs:
        parts.setdefault(_name(graph), []).append(graph)
    return tuple(GraphDocument(name, fx_code.title(found[0]), tuple(found)) for name, found in parts.items())


def find(report: TargetReport, name: str) -> GraphDocument | None:
    """The document of that name, None where there is none."""
    return next((document for document in listed(report) if document.name == name), None)


def text(document: GraphDocument) -> str:
    """The code; each operator is followed by the line of the program that it comes from."""
    return "\n".join(line for graph in document.parts for line in _lines(graph))


def origin(document: GraphDocument, line: int) -> tuple[str, int] | None:
    """The file and line of the program behind a line (1-based) of the document."""
    at = 1  # the first comment
    for graph in document.parts:
        for one in fx_code.code(graph):
            at += 1
            if at == line:
                return (one.file, one.line) if one.file is not None and one.line is not None else None
        at += 2  # an empty line, and the next comment
    return None


def _name(graph: FxGraph) -> str:
    """`graph 0_0 after passes.py`; ids have a slash, which a file's name cannot have."""
    phase = " backward" if graph.phase is Phase.BACKWARD else ""
    return f"graph {graph.graph.replace('/', '_')}{phase} {_NAMES[graph.stage]}.py"


def _lines(graph: FxGraph) -> Iterator[str]:
    """A comment, the code, and an empty line."""
    yield f"# {fx_code.title(graph)}: {words.count(graph.ops, 'operator')}"
    for line in fx_code.code(graph):
        place = f"  # {PurePath(line.file).name}:{line.line}" if line.file is not None else ""
        yield line.text + place
    yield ""
