"""What the forward pass keeps for the backward pass and what that computes again, as tables by line."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from rich import box
from rich.console import RenderableType
from rich.table import Table

from inductoscope.protocol.report import Recomputation, RecomputeReason, SavedKind, SavedTensor, TargetReport
from inductoscope.server import words
from inductoscope.server.tally import is_first_version
from inductoscope.server.text.blocks import counted, gap, indented, paragraph
from inductoscope.server.text.view import Part, View

MOST_ROWS = 60
"""Rows of a table that are shown unless everything is asked for."""

MOST_NAMES = 12
"""Inputs that are named."""

_ASKED = {
    RecomputeReason.PARTITIONER: "torch: cheaper than reading the result",
    RecomputeReason.CHECKPOINT: "the program (checkpoint)",
}

PlaceText = Callable[["str | None", "int | None"], str]


def tables(report: TargetReport, view: View) -> Iterator[RenderableType]:
    """Both tables for each graph of a first version that trains."""
    graphs = dict.fromkeys(one.graph for one in report.saved if is_first_version(one.graph))

    def place(file: str | None, line: int | None) -> str:
        if file is None or line is None:
            return ""
        return str(line) if file == report.file else view.place(file, line)

    for graph in graphs:
        yield gap()
        yield from _saved(graph, [one for one in report.saved if one.graph == graph], place, view)
        yield from _recomputed(graph, [one for one in report.recomputed if one.graph == graph], place, view)


def _saved(graph: str, saved: list[SavedTensor], place: PlaceText, view: View) -> Iterator[RenderableType]:
    made = [one for one in saved if one.kind is SavedKind.ACTIVATION]
    rows = [
        (place(one.file, one.line), (one.op or one.name).removeprefix("aten."), one.text, _size(one.bytes))
        for one in made
    ]
    title = f"kept by the forward pass of graph {graph} for its backward pass"
    yield from _table(title, ("line", "made by", "value", "size"), rows, view)
    inputs = [one for one in saved if one.kind is SavedKind.INPUT]
    if inputs:
        held = words.size(sum(one.bytes or 0 for one in inputs))
        count = words.count(len(inputs), "input, parameter or view of one", "inputs, parameters and views of them")
        names = list(dict.fromkeys(one.source or one.name for one in inputs))
        more = f", and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
        listed = f"{', '.join(names[:MOST_NAMES])}{more}"
        yield paragraph(f"besides: {count}, {held}, alive anyway: {listed}", "dim", 2)
    sizes = [one.text for one in saved if one.kind is SavedKind.SIZE]
    if sizes:
        yield paragraph(f"besides: {words.count(len(sizes), 'size')} ({', '.join(sizes)})", "dim", 2)
    if inputs or sizes:
        yield gap()  # a table has an empty line below it by itself


def _recomputed(graph: str, again: list[Recomputation], place: PlaceText, view: View) -> Iterator[RenderableType]:
    by_line: dict[tuple[str, str], list[str]] = {}
    for one in again:
        key = (place(one.file, one.line), _ASKED[one.reason])
        by_line.setdefault(key, []).append(one.op.removeprefix("aten.") + (" (a view)" if one.view else ""))
    rows = [
        (line, ", ".join(f"{op} x{times}" if times > 1 else op for op, times in counted(ops)), asked)
        for (line, asked), ops in by_line.items()
    ]
    yield from _table(f"computed again in the backward pass of graph {graph}", ("line", "operators", "why"), rows, view)


def _table(title: str, heads: tuple[str, ...], rows: Sequence[tuple[str, ...]], view: View) -> Iterator[RenderableType]:
    """One line for each different row; what a loop repeats is counted."""
    if not rows:
        return
    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    for head in heads:
        table.add_column(head, overflow="fold", justify="right" if head == "size" else "left")
    different = list(counted(rows))
    last = len(different) if view.has(Part.ALL) else MOST_ROWS
    for (line, what, *rest), times in different[:last]:
        table.add_row(line, f"{what} x{times}" if times > 1 else what, *rest)
    yield indented(table)
    if len(different) > last:
        yield paragraph(f"... {words.count(len(different) - last, 'more row')} (--show all)", "dim", 2)


def _size(count_of_bytes: int | None) -> str:
    return "?" if count_of_bytes is None else words.size(count_of_bytes)
