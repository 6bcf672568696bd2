"""One benchmark at a time on a device: two would measure each other.

A lock of the operating system on a file in the folder for temporary files; it ends with the process that holds it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

_LOOK_AGAIN_S = 0.2


@contextlib.contextmanager
def exclusive(device: str, waiting: Callable[[], None], folder: Path | None = None) -> Iterator[None]:
    """Hold the lock of `device` for the block; `waiting` is called once when somebody else holds it.

    `folder` is where the locks lie, by default the system's folder for temporary files; where no file can be made,
    nothing is locked.
    """
    name = "".join(letter if letter.isalnum() else "-" for letter in device)
    path = (folder or Path(tempfile.gettempdir())) / f"inductoscope-bench-{os.getuid()}-{name}.lock"
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        yield
        return
    try:
        _acquire(descriptor, waiting)
        yield
    finally:
        os.close(descriptor)


def _acquire(descriptor: int, waiting: Callable[[], None]) -> None:
    told = False
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if not told:
                waiting()
                told = True
            time.sleep(_LOOK_AGAIN_S)
