"""Fusion groups as tables, kernels as annotated source.

A function that was compiled several times is shown in its first version; the report counts the others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from rich import box
from rich.console import RenderableType
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from inductoscope.protocol.report import FusionGroup, Graph, Kernel, KernelLanguage, Phase, TargetReport
from inductoscope.server import pairing, tally, words
from inductoscope.server.tally import is_first_version
from inductoscope.server.text.blocks import Code, counted, gap, indented, paragraph
from inductoscope.server.text.view import Part, View

CHOICES = 3
"""Ways to compute a kernel that are named unless kernels are asked for."""

_NO_LIMIT = 1_000_000

SOURCE_LINES = 60
"""Lines of a kernel that are shown unless everything is asked for."""

_TRITON_BODY = re.compile(r"^@triton\.jit", re.MULTILINE)

_KINDS = {"extern": "library"}

Row = tuple[FusionGroup, "Kernel | None"]


def tables(report: TargetReport, view: View) -> Iterator[RenderableType]:
    """A table of fusion groups for each graph, backward passes where they were asked for."""
    kernels = pairing.by_group(report)
    later = 0
    shown: list[Table] = []
    hidden: list[Row] = []
    for graph in tally.forward_graphs(report):
        groups = [group for group in report.fusion_groups if group.id.rpartition(":")[0] == graph.id]
        rows = [(group, kernels.get(group.id)) for group in groups if group.kind != "nop"]
        if not is_first_version(graph.id):
            later += 1
            continue
        forward = [row for row in rows if row[1] is None or row[1].phase is Phase.FORWARD]
        backward = [row for row in rows if row not in forward]
        if forward:
            shown.append(_table(_title(graph, view), forward, report, view))
        if backward and view.has(Part.BACKWARD):
            shown.append(_table(f"backward of {_title(_backward(graph, report), view)}", backward, report, view))
        else:
            hidden += backward
    if shown:
        yield gap()  # a table has an empty line below it by itself
    yield from map(indented, shown)
    yield from _not_shown(hidden, later)
    yield from _choices(report, view)
    yield from _decisions(report)


def _decisions(report: TargetReport) -> Iterator[RenderableType]:
    """What only the card can decide, as far as no note says it (`pad_mm`)."""
    told: dict[str, dict[str, None]] = {}
    for one in report.decisions:
        if one.text not in report.notes:
            told.setdefault(one.text, {})[one.subject] = None
    for text, subjects in told.items():
        named = [*list(subjects)[:CHOICES], *([f"{len(subjects) - CHOICES} more"] if len(subjects) > CHOICES else [])]
        yield paragraph(f"{', '.join(named)}: {text}", "dim", 2)


def _not_shown(backward: list[Row], later: int) -> Iterator[RenderableType]:
    parts = []
    if backward:
        library = sum(group.kind == "extern" for group, _ in backward)
        parts.append(f"backward, {words.kernels(len(backward) - library, library)} (--show backward)")
    if later:
        parts.append(f"{words.count(later, 'graph')} of recompiles")
    if parts:
        yield paragraph(f"not shown: {'; '.join(parts)}", "dim", 2)


def _choices(report: TargetReport, view: View) -> Iterator[RenderableType]:
    """What Inductor had the choice of, for each kernel of the tables; the whole list with the kernels' sources."""
    most = _NO_LIMIT if view.has(Part.KERNELS) else CHOICES
    chosen = [kernel for kernel in report.kernels if kernel.choices and is_first_version(kernel.graph)]
    seen = (k for k in chosen if k.phase is Phase.FORWARD or view.has(Part.BACKWARD))
    for (name, ways, note), times in counted((k.name, words.choices(k, most), k.note) for k in seen):
        often = f" x{times}" if times > 1 else ""
        yield paragraph(f"{name}{often}: {ways}{f' ({note})' if note else ''}", "dim", 2)


def _backward(graph: Graph, report: TargetReport) -> Graph:
    """The graph of the backward pass of a captured one, as far as the report has it."""
    found = (one for one in report.graphs if one.phase is Phase.BACKWARD and one.id == graph.id)
    return next(found, graph)


def _title(graph: Graph, view: View) -> str:
    where = view.place(graph.file, graph.line)
    return f"graph {graph.id} of {graph.function} ({where}), {words.count(graph.ops, 'op')}"


def _table(title: str, rows: list[Row], report: TargetReport, view: View) -> Table:
    """One line for each different row; what a loop repeats is counted."""
    predicted = any(kernel is not None and kernel.predicted is not None for _, kernel in rows)
    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("kernel", overflow="fold", ratio=3)
    table.add_column("kind", overflow="fold")
    table.add_column("operators by line", overflow="fold", ratio=4)
    table.add_column("fused", no_wrap=True)
    if predicted:
        table.add_column("predicted", justify="right", no_wrap=True)
    for (name, *cells), times in counted(_cells(group, kernel, report, view) for group, kernel in rows):
        style = "dim" if cells[0].startswith("library") else "cyan"
        label = Text.assemble((name, style), f" x{times}" if times > 1 else "")
        table.add_row(label, *map(Text, cells if predicted else cells[:-1]))
    return table


def _cells(group: FusionGroup, kernel: Kernel | None, report: TargetReport, view: View) -> tuple[str, ...]:
    """Kernel, kind, operators, fused how, predicted time of one launch."""
    return (
        group.kernel,
        (words.computed_by(kernel) if kernel is not None else "") or _KINDS.get(group.kind, group.kind),
        _operators(group, report, view),
        "-" if group.fusion == "none" else group.fusion,
        words.duration(kernel.predicted.us) if kernel is not None and kernel.predicted else "-",
    )


def _operators(group: FusionGroup, report: TargetReport, view: View) -> str:
    """`14: add, mul x2; lib.py:3: relu`: the operators of a group by the line that they come from."""
    places: dict[str, list[str]] = {}
    for op in group.ops:
        place = "" if op.file is None or op.line is None else f"{_line(op.file, op.line, report, view)}: "
        places.setdefault(place, []).append(op.op.removeprefix("aten.").removeprefix("prims."))
    return "; ".join(
        place + ", ".join(f"{name} x{times}" if times > 1 else name for name, times in counted(names))
        for place, names in places.items()
    )


def _line(file: str, line: int, report: TargetReport, view: View) -> str:
    """A line of the target's own file by number, of another with the file's name."""
    return str(line) if file == report.file else view.place(file, line)


def sources(report: TargetReport, view: View) -> Iterator[RenderableType]:
    """The source of each different kernel."""
    seen: set[str] = set()
    for kernel in report.kernels:
        asked = kernel.phase is Phase.FORWARD or view.has(Part.BACKWARD) or view.kernel is not None
        wanted = asked and view.wants(kernel.name)
        if kernel.source is None or kernel.source in seen or not wanted or not is_first_version(kernel.graph):
            continue
        seen.add(kernel.source)
        yield gap()
        yield indented(Text(kernel.name, "bold cyan"))
        yield paragraph("; ".join(_facts(kernel, report, view)), indent=2)
        if kernel.note is not None:
            yield paragraph(kernel.note, "dim", 2)
        yield Code(_annotated(kernel, report, view))


def _facts(kernel: Kernel, report: TargetReport, view: View) -> Iterator[str]:
    yield f"{kernel.language.value}, graph {kernel.graph}"
    if kernel.lines:
        lines = [_line(place.file, place.line, report, view) for place in kernel.lines]
        yield f"{'line' if len(lines) == 1 else 'lines'} {', '.join(lines)}"
    if kernel.bytes_read is not None and kernel.bytes_written is not None:
        yield f"reads {words.size(kernel.bytes_read)}, writes {words.size(kernel.bytes_written)}"
    if kernel.launch is not None and kernel.launch.num_warps is not None:
        yield words.count(kernel.launch.num_warps, "warp")
    if kernel.resources is not None:
        yield words.resources(kernel.resources)
    if kernel.predicted is not None:
        yield words.predicted(kernel.predicted)


def _annotated(kernel: Kernel, report: TargetReport, view: View) -> Text:
    """The source with the model line of each kernel line in the margin.

    Imports and the decorator with Inductor's notes to itself are left out unless everything is asked for.
    """
    source = (kernel.source or "").rstrip()
    body = None if view.has(Part.ALL) else _TRITON_BODY.search(source)
    first = source.count("\n", 0, body.start()) if body is not None else 0
    lines = _highlighted(source, kernel.language)
    last = len(lines) if view.has(Part.ALL) else min(len(lines), first + SOURCE_LINES)
    model_lines = {one.kernel_line: _line(one.file, one.line, report, view) for one in kernel.line_map}
    shown = [(str(model_lines.get(number + 1, "")), lines[number]) for number in range(first, last)]
    if first:
        shown.insert(0, ("", Text(f"... {words.count(first, 'line')} of imports and settings (--show all)", "dim")))
    if last < len(lines):
        shown.append(("", Text(f"... {words.count(len(lines) - last, 'more line')} (--show all)", "dim")))
    return Text("\n").join(Text.assemble((f"{margin:>6} | ", "dim"), line) for margin, line in shown)


def _highlighted(source: str, language: KernelLanguage) -> list[Text]:
    """The lines in the terminal's own colours."""
    lexer = "cpp" if language is KernelLanguage.CPP else "python"
    coloured = Syntax(source, lexer, theme="ansi_dark").highlight(source)
    return list(coloured.split("\n"))[: source.count("\n") + 1]
