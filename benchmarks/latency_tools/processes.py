"""What the processes of a server cost while nothing and while something happens (Linux)."""

from __future__ import annotations

import os
import time
from pathlib import Path


def tree(root: int) -> list[int]:
    """The process and its descendants."""
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            fields = _stat(int(folder.name))
            if fields:
                children.setdefault(int(fields[1]), []).append(int(folder.name))
    found = [root]
    for pid in found:
        found += children.get(pid, [])
    return found


def cpu_seconds(pids: list[int]) -> float:
    """CPU time of those processes so far, user and system."""
    ticks = sum(int(fields[11]) + int(fields[12]) for pid in pids if (fields := _stat(pid)))
    return ticks / os.sysconf("SC_CLK_TCK")


def idle_share(root: int, seconds: float) -> float:
    """The part of a core that a process and its descendants use while nobody asks them for anything."""
    pids = tree(root)
    before, begun = cpu_seconds(pids), time.perf_counter()
    time.sleep(seconds)
    return (cpu_seconds(pids) - before) / (time.perf_counter() - begun)


def memory_mib(pid: int) -> tuple[float, float]:
    """Resident and proportional memory (pages that several processes share count once in all) of one process."""
    found = {"Rss": 0, "Pss": 0}
    for line in Path("/proc", str(pid), "smaps_rollup").read_text(encoding="ascii").splitlines():
        name, _, rest = line.partition(":")
        if name in found:
            found[name] = int(rest.split()[0])
    return found["Rss"] / 1024, found["Pss"] / 1024


def _stat(pid: int) -> list[str]:
    try:
        text = Path("/proc", str(pid), "stat").read_text(errors="replace")
    except OSError:
        return []
    return text[text.rindex(")") + 2 :].split()
