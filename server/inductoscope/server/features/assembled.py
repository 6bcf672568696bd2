"""What a hover says of an assembled kernel: its candidates, Triton's remarks on the line, and where the texts are."""

from __future__ import annotations

from collections.abc import Iterator

from inductoscope.protocol.report import Kernel, TargetReport
from inductoscope.server.features import artifacts, kernel_documents
from inductoscope.server.features.markup import Link, Links
from inductoscope.server.snapshot import TargetView

REMARKS = 3
"""Remarks on one line that are shown; the rest is told by number."""


def points(kernel: Kernel, path: str, line: int) -> Iterator[str]:
    """Sentences about a kernel that a line of the program went into."""
    registers = [config.registers for config in kernel.configs if config.registers is not None]
    if len(registers) > 1:
        low, high = min(registers), max(registers)
        between = f"{low}" if low == high else f"{low} to {high}"
        yield f"one of {len(kernel.configs)} configurations that a card would time, with {between} registers"
    own = {one.kernel_line for one in kernel.line_map if (one.file, one.line) == (path, line)}
    found = dict.fromkeys(
        remark.text
        for config in kernel.configs
        if config.likely
        for remark in config.remarks
        if remark.kernel_line in own
    )
    for text in list(found)[:REMARKS]:
        yield f"Triton remarks: {text}"
    if len(found) > REMARKS:
        yield f"and {len(found) - REMARKS} more remarks"


def links(view: TargetView, report: TargetReport, kernel: Kernel) -> Links | None:
    """The kernel's documents, where there are more than its source."""
    documents = kernel_documents.of_kernel(report, kernel)
    if len(documents) < 2:
        return None
    return Links(tuple(Link(one.stage or "source", artifacts.kernel_address(view, one).uri) for one in documents))
