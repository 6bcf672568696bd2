"""Files that are kept for later in a folder that several processes use at once: written whole or not at all, and what
was used longest ago goes first when there is too much.  Knows nothing of what is in them.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

_UNFINISHED = ".part"
_UNFINISHED_S = 3600.0
"""Unfinished files of writers that died are removed after an hour."""
_TRIM_TO = 0.8
"""Trimming goes on to this share of the budget, so that it is not needed again at once."""


@dataclass(frozen=True)
class KeptFile:
    """A file, its bytes, and when it was used last (Unix)."""

    path: Path
    size: int
    used: float


def kept(folder: Path, pattern: str, suffix: str) -> Iterator[KeptFile]:
    """The files with that suffix; what writers that died left unfinished is removed on the way."""
    now = time.time()
    for path in folder.glob(pattern):
        try:
            status = path.stat()
            if path.suffix == suffix:
                yield KeptFile(path, status.st_size, status.st_mtime)
            elif path.suffix == _UNFINISHED and now - status.st_mtime > _UNFINISHED_S:
                path.unlink()
        except OSError:  # somebody else removed it
            continue


@contextlib.contextmanager
def writing(path: Path) -> Iterator[IO[bytes]]:
    """A file that takes the place of `path` when the block ends well.  Raises `OSError`, and then leaves nothing."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor, unfinished = tempfile.mkstemp(dir=path.parent, suffix=_UNFINISHED)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
        Path(unfinished).replace(path)
    except BaseException:
        remove(Path(unfinished))
        raise


def trim(files: Iterable[KeptFile], budget: int) -> None:
    """Where they take more than `budget` bytes, remove what was used longest ago.  Others may do so meanwhile."""
    oldest = sorted(files, key=lambda file: file.used)
    excess = sum(file.size for file in oldest) - budget
    if excess <= 0:
        return
    excess += int(budget * (1 - _TRIM_TO))
    for file in oldest:
        if excess <= 0:
            return
        if remove(file.path):
            excess -= file.size


def remove(path: Path) -> bool:
    """Remove a file; whether that was done: it may be gone, or held."""
    try:
        path.unlink()
    except OSError:
        return False
    return True
