"""Whether other sizes can be tried for a run, and whether that would tell anything."""

from __future__ import annotations

import os
from pathlib import Path

from inductoscope.compiler.inputs import CallInputs, GivenCalls, Source
from inductoscope.compiler.placement import Placement
from inductoscope.compiler.probing import apart
from inductoscope.protocol.messages import Run
from inductoscope.protocol.report import Status, TargetReport

_PROCESSES = 3
"""This one, the one that asks the questions, and the one that answers; the pages that they share count for each."""


def call_to_probe(request: Run, report: TargetReport, source: Source, where: Placement) -> CallInputs | None:
    """The one call to try with other sizes: it compiled, and this process can be forked and has room for it.

    None where there is no such call.  A real GPU cannot be used in a fork.  A function at its limit of versions
    compiles no further ones.  Questions about other inputs (`what_if`) leave a program in a state of their own.
    """
    if request.probe_seconds <= 0 or request.what_if or not isinstance(source, GivenCalls) or len(source.calls) != 1:
        return None
    came_through = report.status in (Status.COMPILED, Status.PARTIAL) and report.recompile_limit is None
    can_fork = apart.possible() and (where.is_cpu or where.simulation is not None)
    return source.calls[0] if came_through and can_fork and _has_room(request.memory_bytes) else None


def _has_room(limit: int | None) -> bool:
    """Whether three processes like this one stay within the limit."""
    if limit is None:
        return True
    resident = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return _PROCESSES * resident < limit
