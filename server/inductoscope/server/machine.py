"""What the machine has.  Standard library only: the server also travels without compiled packages."""

from __future__ import annotations

import os
import sys
from pathlib import Path

_CONTAINER_LIMIT = Path("/sys/fs/cgroup/memory.max")


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
