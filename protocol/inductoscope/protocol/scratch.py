"""The temporary folder of a worker: how it is named, and how to be rid of it.

The worker makes it; both sides remove it, because a worker may be ended at any moment and its server may vanish.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

_PREFIX = "inductoscope-worker-"


def make() -> Path:
    """A new folder of this process; its name holds the process id.  Raises `OSError` where none can be made."""
    return Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-"))


def remove(folder: Path) -> None:
    """Delete `folder` as far as the system lets us."""
    shutil.rmtree(folder, ignore_errors=True)


def remove_of(pid: int) -> None:
    """Delete the folders of a process that has ended."""
    for folder in _all():
        if _owner(folder) == pid:
            remove(folder)


def remove_abandoned() -> None:
    """Delete the folders of this user's workers that no longer run."""
    for folder in _all():
        owner = _owner(folder)
        if owner is not None and not _runs(owner):
            remove(folder)


def _all() -> list[Path]:
    try:
        return list(Path(tempfile.gettempdir()).glob(f"{_PREFIX}*-*"))
    except OSError:  # no folder at all for temporary files
        return []


def _owner(folder: Path) -> int | None:
    owner = folder.name.removeprefix(_PREFIX).split("-")[0]
    return int(owner) if owner.isdecimal() else None


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
