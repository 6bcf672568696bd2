"""What a warm process can have ready beyond torch itself: a device, imported modules."""

from __future__ import annotations

import os
import site
import sys
import sysconfig
import threading
from dataclasses import dataclass
from pathlib import Path

from inductoscope.protocol.messages import Layer, Warmed


@dataclass(frozen=True)
class Made:
    """A layer that was added: what the process has ready now, in words, and what it tells the server."""

    has: tuple[str, ...]
    warmed: Warmed


def add(layer: Layer, cwd: str | None, place: Path) -> Made:
    """Add `layer` to this process; `place` is a folder for what has to be written."""
    before = threads()
    if layer.device is None:
        return Made((), Warmed((), why_unfit(before)))
    from inductoscope.compiler.warm import rehearsal

    unfit = rehearsal.compile_something(layer.device, place)
    return Made((layer.device,), Warmed((), unfit or why_unfit(before)))


def why_unfit(threads_before: int) -> str | None:
    """Why this process must not be forked, as a sentence; None if it may.

    Threads are not there after a fork, and what they held is held for good.  `threads_before` is how many the process
    had when only torch was imported: libraries of that kind (OpenBLAS) end theirs before a fork and start them anew.
    """
    if threading.active_count() > 1:
        names = ", ".join(sorted(thread.name for thread in threading.enumerate()[1:]))
        return f"threads run in it ({names})"
    if threads() > threads_before:
        return "a library started threads in it"
    return None


def installation() -> tuple[str, ...]:
    """Files and folders that change when the interpreter, torch or another package is installed anew."""
    import torch

    folders = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), site.getusersitepackages()}
    files = [os.path.realpath(sys.executable), str(torch.version.__file__), str(Path(sys.prefix, "pyvenv.cfg"))]
    return tuple(path for path in (*files, *sorted(folders & set(sys.path))) if path and Path(path).exists())


def threads() -> int:
    """The threads of this process, those of libraries included."""
    return sum(1 for _ in Path("/proc/self/task").iterdir())
