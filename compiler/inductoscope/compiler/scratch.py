"""A private temporary folder of this process, for the caches that torch and Triton keep on disk.

A shared cache would hand back results of an earlier text, with that text's line numbers.
"""

from __future__ import annotations

import os
from pathlib import Path

from inductoscope.protocol import scratch

INDUCTOR, TRITON = "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR"
CACHE_VARIABLES = (INDUCTOR, TRITON)
"""Environment variables that name the folders of these caches."""


_USERS = "INDUCTOSCOPE_USERS_"
"""What the variables of the user's own said is kept in others of this prefix."""


def make() -> Path:
    """A new folder of this process, after removing what dead workers left.  Raises `OSError` where none can be made."""
    scratch.remove_abandoned()
    return scratch.make()


def keep_caches_in(folder: Path) -> None:
    """Let torch's and Triton's caches live in `folder`.  To be called before they are imported."""
    for variable in CACHE_VARIABLES:
        if (users := os.environ.get(variable)) is not None:
            os.environ[_USERS + variable] = users
        os.environ[variable] = str(folder / variable.lower())


def move_caches(old: Path, new: Path) -> None:
    """Let the caches that are to live in `old` live in `new` instead, unless the program named a folder meanwhile."""
    for variable in CACHE_VARIABLES:
        if os.environ.get(variable) == str(old / variable.lower()):
            os.environ[variable] = str(new / variable.lower())


def users_folder(variable: str) -> Path | None:
    """The folder that the user names by one of `CACHE_VARIABLES`: in the program itself, else in its environment."""
    now = os.environ.get(variable)
    if now is not None and Path(now).name != variable.lower():
        return Path(now)
    before = os.environ.get(_USERS + variable)
    return Path(before) if before else None
