"""Torch's compile caches as text: what they would do with each graph at the next start, and why."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from inductoscope.protocol.report import CacheFact, TargetReport
from inductoscope.server import caches
from inductoscope.server.text.blocks import gap, indented, paragraph
from inductoscope.server.text.view import View

_STYLES = {"hit": "green", "miss": "yellow", "bypass": "bold yellow"}


def cache_facts(report: TargetReport, view: View) -> Iterator[RenderableType]:
    """Everything about the caches of a target; nothing where none was asked."""
    if not report.caches:
        return
    yield gap()
    yield paragraph(f"torch's caches, if the program were started now: {caches.summary(report)}", "bold", 2)
    for fact in caches.told(report):
        yield indented(Text.assemble(f"{caches.subject(fact)}, {caches.name(fact)}: ", _result(fact)), 4)
        yield from (paragraph(because, "dim", 6) for because in fact.because)
        if fact.file is not None and fact.line is not None:
            yield paragraph(f"because of {view.place(fact.file, fact.line)}", "dim", 6)
        if fact.key is not None:
            yield paragraph(f"key {fact.key}", "dim", 6)


def _result(fact: CacheFact) -> tuple[str, str]:
    return fact.result, _STYLES.get(fact.result, "")
