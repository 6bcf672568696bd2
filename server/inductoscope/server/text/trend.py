"""The history of a target's benchmarks as text: a table, and a plot that fits a terminal.

Works from the entries alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import groupby

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from inductoscope.server import words
from inductoscope.server.bench import noise
from inductoscope.server.bench.history import Entry
from inductoscope.server.text.blocks import Code, gap, indented, paragraph

_ROWS = 8
_COLUMNS = 72
_LISTED = 20
_BLOCKS = " ▁▂▃▄▅▆▇█"


def shown(entries: Sequence[Entry]) -> Iterator[RenderableType]:
    """Each series of results under a heading, with its plot where there are several results."""
    ordered = sorted(entries, key=_series)
    for _, group in groupby(ordered, key=_series):
        series = list(group)
        yield Text(_title(series[-1]), "bold")
        yield indented(_table(series))
        if len(series) > 1:
            yield gap()
            yield paragraph("compiled time a call, oldest to newest", "dim", 2)
            yield Code(
                Text("\n".join(plot([one.benchmark.compiled.us for one in series if one.benchmark.compiled]))), 2
            )
        yield gap()


def plot(times_us: Sequence[float], rows: int = _ROWS, columns: int = _COLUMNS) -> list[str]:
    """Bars of the newest times from zero up, with the largest and zero on the axis."""
    newest = list(times_us)[-columns:]
    top = max(newest)
    labels = [words.duration(top), *([""] * (rows - 2)), "0"] if rows > 1 else [words.duration(top)]
    width = max(map(len, labels))
    filled = [one / top * rows if top else 0.0 for one in newest]
    lines = []
    for row in range(rows):
        below = rows - 1 - row
        bars = "".join(_BLOCKS[_eighths(height - below)] for height in filled)
        lines.append(f"{labels[row]:>{width}} ┤{bars}")
    return lines


def _eighths(height: float) -> int:
    """Which block stands for this part of a row; what is there at all is seen."""
    return max(0, min(8, math.ceil(height * 8)))


def _table(series: Sequence[Entry]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for name in ("taken (UTC)", "revision", "torch", "eager", "compiled", "speed-up", "since the one before"):
        table.add_column(name, no_wrap=True)
    pairs = list(zip([None, *series], series, strict=False))
    for before, entry in pairs[-_LISTED:]:
        table.add_row(*_row(before, entry))
    return table


def _row(before: Entry | None, entry: Entry) -> tuple[str, ...]:
    one = entry.benchmark
    return (
        entry.taken.removesuffix("+00:00").replace("T", " "),
        entry.revision or "",
        entry.torch or "",
        words.duration(one.eager.us) if one.eager else "",
        words.duration(one.compiled.us) if one.compiled else "",
        f"{one.speedup:.2f}x" if one.speedup is not None else "",
        _since(before, entry),
    )


def _since(before: Entry | None, entry: Entry) -> str:
    change = noise.change(before.benchmark, entry.benchmark, before.taken) if before is not None else None
    if change is None:
        return ""
    if not change.beyond_noise:
        return "within noise"
    return f"{change.ratio:.2f}x faster" if change.ratio > 1 else f"{1 / change.ratio:.2f}x slower"


def _title(entry: Entry) -> str:
    one = entry.benchmark
    mode = f", mode {one.mode}" if one.mode is not None else ""
    return f"{entry.target} of {entry.file} on {one.where}{mode}, {one.passes.value}, inputs {', '.join(one.inputs)}"


def _series(entry: Entry) -> tuple[str, ...]:
    one = entry.benchmark
    return (entry.file, entry.target, one.where, one.mode or "", one.passes.value, *one.inputs)
