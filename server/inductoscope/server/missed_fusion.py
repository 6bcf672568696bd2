"""Kernels that stay apart from a neighbour, as findings for whoever asks: most stay apart for good reasons.

A function of the report; only what could have been one kernel is told, so neither library calls nor kernels without
common data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from inductoscope.protocol.codes import CODES
from inductoscope.protocol.report import ApartFrom, Finding, FusionGroup, Related, TargetReport
from inductoscope.server import apart

CODE = "missed-fusion"

_NEVER_ONE = ("extern kernel", "no shared data", "one combo", "different graphs", "device mismatch")
"""How the scheduler's reasons begin for kernels that nothing could make one."""


def findings(report: TargetReport, line_text: Callable[[str, int], str]) -> Iterator[Finding]:
    """Each pair of kernels once, at the first line of the later one; `line_text` gives a line of a file, 1-based."""
    at = {group.id: number for number, group in enumerate(report.fusion_groups)}
    for group in report.fusion_groups:
        for neighbour in group.apart_from:
            earlier = at.get(neighbour.group)
            if earlier is not None and earlier < at[group.id] and not neighbour.reason.startswith(_NEVER_ONE):
                found = _finding(report, group, report.fusion_groups[earlier], neighbour, line_text)
                if found is not None:
                    yield found


def _finding(
    report: TargetReport,
    group: FusionGroup,
    other: FusionGroup,
    neighbour: ApartFrom,
    line_text: Callable[[str, int], str],
) -> Finding | None:
    here, there = _first_place(group), _first_place(other)
    if here is None:
        return None
    file, line = here
    text = line_text(file, line).rstrip()
    return Finding(
        code=CODE,
        severity=CODES[CODE].severity,
        file=file,
        line=line,
        column=len(text) - len(text.lstrip()),
        end_line=line,
        end_column=len(text),
        message=f"{group.kernel} is {apart.reason(neighbour, report, file)}.",
        rung=report.rung,
        related=() if there is None else (Related(*there, f"{other.kernel} begins here"),),
    )


def _first_place(group: FusionGroup) -> tuple[str, int] | None:
    return next(((op.file, op.line) for op in group.ops if op.file is not None and op.line is not None), None)
