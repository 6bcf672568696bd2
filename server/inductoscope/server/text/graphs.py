"""FX graphs as code with the program's lines in the margin."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.syntax import Syntax
from rich.text import Text

from inductoscope.protocol.report import FxGraph, Phase, Stage, TargetReport
from inductoscope.server import fx_code, words
from inductoscope.server.fx_code import CodeLine
from inductoscope.server.tally import is_first_version
from inductoscope.server.text.blocks import Code, gap, indented, paragraph
from inductoscope.server.text.view import Part, View

MOST_LINES = 200
"""Lines of a graph that are shown unless everything is asked for."""


def listed(report: TargetReport, view: View) -> Iterator[RenderableType]:
    """Graphs as captured and as lowered, backward ones where those were asked for; with `all`, each at every stage."""
    order = {graph: at for at, graph in enumerate(dict.fromkeys(one.graph for one in report.fx_graphs))}
    graphs = sorted(report.fx_graphs, key=lambda graph: order[graph.graph])  # stable: stages stay in order
    shown = [graph for graph in graphs if _wanted(graph, view)]
    for graph in shown:
        yield gap()
        yield indented(Text(f"{fx_code.title(graph)}: {words.count(graph.ops, 'op')}", "bold"))
        yield Code(_annotated(graph, report, view))
    rest = [graph for graph in graphs if graph.body is None and graph not in shown]
    if rest:
        yield gap()
        yield paragraph(f"graphs not shown (--show all): {'; '.join(map(_named, rest))}", "dim", 2)


def _wanted(graph: FxGraph, view: View) -> bool:
    if view.has(Part.ALL):
        return True
    asked = graph.phase is Phase.FORWARD or view.has(Part.BACKWARD)
    return asked and graph.stage in (Stage.CAPTURED, Stage.LOWERED) and is_first_version(graph.graph)


def _named(graph: FxGraph) -> str:
    """`0/0 partitioned backward`."""
    phase = " backward" if graph.phase is Phase.BACKWARD else ""
    return f"{graph.graph} {graph.stage.value}{phase}, {words.count(graph.ops, 'op')}"


def _annotated(graph: FxGraph, report: TargetReport, view: View) -> Text:
    lines = list(fx_code.code(graph))
    coloured = Syntax("\n".join(line.text for line in lines), "python", theme="ansi_dark")
    texts = list(coloured.highlight("\n".join(line.text for line in lines)).split("\n"))
    margins = [_margin(line, report, view) for line in lines]
    width = max(6, *map(len, margins))
    last = len(lines) if view.has(Part.ALL) else min(len(lines), MOST_LINES)
    shown = [
        Text.assemble((f"{margin:>{width}} | ", "dim"), text)
        for margin, text in zip(margins[:last], texts[:last], strict=True)
    ]
    if last < len(lines):
        more = f"... {words.count(len(lines) - last, 'more line')} (--show all)"
        shown.append(Text(f"{'':>{width}} | {more}", "dim"))
    return Text("\n").join(shown)


def _margin(line: CodeLine, report: TargetReport, view: View) -> str:
    """The line's number in the target's own file, with the file's name in another."""
    if line.file is None or line.line is None:
        return ""
    return str(line.line) if line.file == report.file else view.place(line.file, line.line)
