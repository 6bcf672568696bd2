"""A process and its descendants: who they are, how much memory they hold, signals to them.

Standard library only, because this travels with the editor extension, which brings no compiled packages: Linux is asked
through /proc, other POSIX systems through `ps`.  Knows nothing of workers.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Member:
    """One process.  `started` (clock ticks or a date) tells it from a later one that was given the same number."""

    pid: int
    parent: int
    started: str
    resident_bytes: int


def members(root: int) -> tuple[Member, ...]:
    """The process `root` and all its descendants, parents first; empty when `root` has ended."""
    table = _table()
    children: dict[int, list[Member]] = {}
    for member in table.values():
        children.setdefault(member.parent, []).append(member)
    found = [table[root]] if root in table else []
    for member in found:  # grows while it is walked
        found.extend(children.get(member.pid, ()))
    return tuple(found)


def resident_bytes(root: int) -> int:
    """Resident memory of the process and its descendants; pages that they share count for each."""
    return sum(member.resident_bytes for member in members(root))


def proportional_bytes(root: int) -> int:
    """Memory of the process and its descendants, in which pages that several share count once in all.

    Takes milliseconds for each process.  Where the system does not tell (it is Linux that does), pages count for each.
    """
    found = members(root)
    shares = (_proportional_bytes(member.pid) for member in found)
    return sum(member.resident_bytes if share is None else share for member, share in zip(found, shares, strict=True))


def _proportional_bytes(pid: int) -> int | None:
    try:
        lines = Path("/proc", str(pid), "smaps_rollup").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    pss = next((line for line in lines if line.startswith("Pss:")), None)
    return None if pss is None else int(pss.split()[1]) * 1024


def marked(mark: str) -> tuple[Member, ...]:
    """The processes that were started with `mark`, of the form `NAME=value`, in their environment.

    A process that left its parents behind (a daemon) still has it.  Empty where the system does not tell.
    """
    wanted = mark.encode()
    return tuple(member for member in _table().values() if wanted in _environment(member.pid).split(b"\0"))


def send_signal(to: Iterable[Member], number: signal.Signals) -> None:
    """Signal those of the processes that are still the same ones."""
    now = _table()
    for member in to:
        same = now.get(member.pid)
        if same is not None and same.started == member.started:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(member.pid, number)


def _table() -> Mapping[int, Member]:
    found = _from_proc(Path("/proc")) if sys.platform == "linux" else _from_ps()
    return {member.pid: member for member in found}


def _from_proc(proc: Path) -> list[Member]:
    page = os.sysconf("SC_PAGE_SIZE")
    found = []
    for folder in proc.iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError):  # it ended meanwhile
                found.append(_from_stat(int(folder.name), (folder / "stat").read_text(errors="replace"), page))
    return found


def _from_stat(pid: int, stat: str, page: int) -> Member:
    """A line of /proc/PID/stat (man proc_pid_stat); the name in brackets may hold anything, brackets included."""
    fields = stat[stat.rindex(")") + 2 :].split()  # from the third field, `state`, on
    parent, started, resident_pages = fields[1], fields[19], fields[21]
    return Member(pid, int(parent), started, int(resident_pages) * page)


def _environment(pid: int) -> bytes:
    try:
        return Path("/proc", str(pid), "environ").read_bytes()
    except OSError:  # not this system, not our process, or it ended meanwhile
        return b""


def _from_ps() -> list[Member]:
    columns = ["ps", "-A", "-o", "pid=,ppid=,rss=,lstart="]
    answer = subprocess.run(columns, capture_output=True, text=True, check=False)
    rows = (line.split(maxsplit=3) for line in answer.stdout.splitlines())
    return [Member(int(pid), int(parent), started, int(kib) * 1024) for pid, parent, kib, started in rows]
