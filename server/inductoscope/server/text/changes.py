"""What became different, as text: the files that changed, and per target only what is not as before."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rich.console import Group, RenderableType
from rich.text import Text

from inductoscope.protocol.messages import Target
from inductoscope.protocol.report import Finding, TargetReport
from inductoscope.server import tally, whole_calls, words
from inductoscope.server.difference import Difference
from inductoscope.server.paths import shown
from inductoscope.server.text.blocks import indented, paragraph
from inductoscope.server.text.report import title
from inductoscope.server.text.view import View

_NAMED = 3
"""Changed files that are named."""


def changed(paths: tuple[str, ...], targets: tuple[Target, ...], folder: Path) -> Text:
    """`lib.py changed: checking Model.forward`."""
    names = [shown(path, folder) for path in paths[:_NAMED]]
    if len(paths) > _NAMED:
        names.append(words.count(len(paths) - _NAMED, "more file"))
    what = f"checking {', '.join(target.name for target in targets)}" if targets else "nothing to recompute"
    return Text.assemble((", ".join(names), "bold"), f" changed: {what}")


def difference(found: Difference, view: View) -> Group:
    """What is not as before; that everything is, where it is."""
    return Group(*_difference(found, view))


def _difference(found: Difference, view: View) -> Iterator[RenderableType]:
    after = found.after
    yield title(after, view)
    if cached := words.cached(after):
        yield paragraph(f"cached: {cached}", "dim", 2)
    if found.is_nothing:
        yield paragraph("compiles to the same as before", indent=2)
        return
    for finding in found.gone:
        yield _finding("gone", "green", finding, view)
    for finding in found.new:
        yield _finding("new", "yellow", finding, view)
    numbers = ", ".join(_numbers(found.before, after))
    if numbers:
        yield paragraph(numbers, indent=2)
    if found.kernels:
        count, of = found.kernels, len(tally.first_kernels(after))
        yield paragraph(f"{count} of {words.count(of, 'kernel')} and library calls are not as before", indent=2)


def _finding(what: str, style: str, finding: Finding, view: View) -> RenderableType:
    code = f"{finding.code}{f' {finding.id}' if finding.id else ''}"
    place = view.place(finding.file, finding.line)
    said = words.first_sentence(finding.message)
    return indented(Text.assemble((f"{what}: ", style), (code, "bold"), f"  {place}  {said}"))


def _numbers(before: TargetReport, after: TargetReport) -> Iterator[str]:
    """`kernels 9 -> 7`, and so on for every number that is another."""
    if before.status is not after.status:
        yield f"{before.status.value} -> {after.status.value}"
    was, now = tally.of(before), tally.of(after)
    for noun, old, new in (
        ("breaks", was.breaks, now.breaks),
        ("recompiles", was.recompiles, now.recompiles),
        ("graphs", was.graphs, now.graphs),
        ("ops", was.ops, now.ops),
        ("kernels", was.generated, now.generated),
        ("library calls", was.library, now.library),
    ):
        if old != new:
            yield f"{noun} {old} -> {new}"
    yield from _times(before, after)


def _times(before: TargetReport, after: TargetReport) -> Iterator[str]:
    change = whole_calls.change(before, after)
    if change is not None:
        yield change
