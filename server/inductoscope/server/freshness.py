"""Whether a result still answers for the text on screen, so that nothing has to be run.

A fingerprint covers what can change a program's meaning: what its file and the files it imports mean (see `meaning`),
the comment that gives the inputs, and how it is run.  Comments, blank lines and layout do not count, as long as every
line that the result speaks of is still there as it was.
"""

from __future__ import annotations

from collections.abc import Iterator

from inductoscope.protocol.messages import Target
from inductoscope.protocol.report import Rung, TargetReport
from inductoscope.server import meaning
from inductoscope.server.snapshot import Snapshot, TargetView


def fingerprint(target: Target, device: str, rung: Rung, interpreter: tuple[str, ...], program: str) -> str:
    """A name for all that a run of `target` depends on, as far as it can be told without running it.

    `program` is the name of what its files say: `meaning.program`.
    """
    what = (target.entry, target.kind.value, target.comment or "")
    return meaning.name_of((*what, device, rung.value, *interpreter, program))


def still_answers(snapshot: Snapshot, view: TargetView, current: str) -> bool:
    """Whether the last result of a target, good or bad, holds for a program with the fingerprint `current`."""
    result = view.settled
    if result is None or result.fingerprint != current:
        return False
    return all(snapshot.now_at(result, path, line) is not None for path, line in mentioned(result.report))


def mentioned(report: TargetReport) -> Iterator[tuple[str, int]]:
    """Every place that the editor would show something at."""
    for finding in report.findings:
        yield finding.file, finding.line
    for kernel in report.kernels:
        yield from ((place.file, place.line) for place in kernel.lines)
        yield from ((mapping.file, mapping.line) for mapping in kernel.line_map)
