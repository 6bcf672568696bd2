"""The times of a run as text: a tree of phases with their share, then what each compilation spent on what."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from inductoscope.protocol.report import TargetReport
from inductoscope.server import phases
from inductoscope.server.text.blocks import Code, gap, paragraph
from inductoscope.server.text.view import Part, View

_NAME_WIDTH = 44


def phase_times(report: TargetReport, view: View) -> Iterator[RenderableType]:
    """Everything about the times of a target; nothing where none were taken."""
    total = phases.total_ms(report)
    if not total:
        return
    ours = phases.ours_ms(report)
    own = f"of which Inductoscope's own {phases.time(ours)} ({ours / total:.0%})"
    yield gap()
    yield paragraph(f"time in the worker: {phases.time(total)}, {own}", "bold", 2)
    least = 0.0 if view.has(Part.ALL) else phases.LEAST_SHARE
    for row in phases.rows(report, least):
        name = "  " * row.depth + row.name
        yield Code(Text(f"{name:{_NAME_WIDTH}} {phases.time(row.ms):>9} {row.share:>5.1%}"), 4)
    for one in phases.compilations(report):
        yield paragraph(f"{one.graph} {phases.described(one)}", "dim")
    for always in phases.always_lowered(report):
        yield paragraph(always, "dim")
