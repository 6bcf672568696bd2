"""What the machine has.  Standard library only: the server also travels without compiled packages."""

from __future__ import annotations

import os
import sys
from pathlib import Path

_CONTAINER_LIMIT = Path("/sys/fs/cgroup/memory.max")
_CONTAINER_CORES = Path("/sys/fs/cgroup/cpu.max")
"""Microseconds of all cores together that the container may use in a period of so many microseconds."""


def memory_bytes() -> int | None:
    """The memory of the machine, or of the container around this process; None on Windows, where no worker runs."""
    if sys.platform == "win32":
        return None
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        limit = _CONTAINER_LIMIT.read_text(encoding="ascii").strip()
    except OSError:
        return total
    return min(total, int(limit)) if limit.isdecimal() else total


def share_of_memory(part: float) -> int | None:
    """That part of the memory, in bytes; None where the machine does not tell."""
    total = memory_bytes()
    return None if total is None else int(total * part)


def cores() -> int:
    """How many cores this process may keep busy, as far as the system or the container around it tells; at least 1."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, period = _CONTAINER_CORES.read_text(encoding="ascii").split()
    except (OSError, ValueError):
        return allowed
    if not quota.isdecimal() or not period.isdecimal() or period == "0":
        return allowed
    return max(1, min(allowed, int(quota) // int(period)))
