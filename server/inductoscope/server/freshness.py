"""Whether a result still answers for the text on screen, so that nothing has to be run.

A fingerprint covers what can change a program's meaning: the syntax trees of its file and of the workspace files it
imports, the comment that gives the inputs, and how it is run.  Comments, blank lines and layout do not count, as long
as every line that the result speaks of is still there as it was.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping

from inductoscope.protocol.messages import Target
from inductoscope.protocol.report import TargetReport
from inductoscope.server.settings import Settings
from inductoscope.server.snapshot import Snapshot, TargetView


def program(closure: Mapping[str, str]) -> str:
    """A name for what a file and all workspace files that it imports say, from the digest of each by path."""
    return _name(part for item in sorted(closure.items()) for part in item)


def fingerprint(target: Target, settings: Settings, program_name: str) -> str:
    """A name for all that a run of `target` depends on, as far as it can be told without running it."""
    how = (settings.device, settings.rung.value, *settings.interpreter)
    return _name((target.entry, target.kind.value, target.comment or "", *how, program_name))


def _name(parts: Iterable[str]) -> str:
    state = hashlib.sha256()
    for part in parts:
        state.update(part.encode("utf-8", "surrogatepass") + b"\0")
    return state.hexdigest()


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
