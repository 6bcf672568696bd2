"""A private temporary folder of this process, for the caches that torch and Triton keep on disk.

A shared cache would hand back results of an earlier text, with that text's line numbers.  A worker may be killed at any
moment, so each one also removes what dead workers left behind.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

_PREFIX = "inductoscope-worker-"
_CACHE_VARIABLES = ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")


def make() -> Path:
    """A new folder of this process; its name holds the process id."""
    remove_abandoned()
    return Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-"))


def keep_caches_in(folder: Path) -> None:
    """Let torch's and Triton's caches live in `folder`.  To be called before they are imported."""
    for variable in _CACHE_VARIABLES:
        os.environ[variable] = str(folder / variable.lower())


def remove(folder: Path) -> None:
    """Delete `folder` as far as the system lets us."""
    shutil.rmtree(folder, ignore_errors=True)


def remove_abandoned() -> None:
    """Delete the folders of this user's workers that no longer run."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*-*"):
        owner = folder.name.removeprefix(_PREFIX).split("-")[0]
        if owner.isdecimal() and not _runs(int(owner)):
            remove(folder)


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
