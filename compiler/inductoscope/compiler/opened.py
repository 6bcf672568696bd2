"""Which data files the user's program reads: a configuration, a vocabulary, weights.

What is compiled may depend on them, so a result holds only as long as they are as they were.  Files that the process
itself writes are no inputs.  Files that native code opens by itself are not seen.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

MOST = 200
"""Files that are told of: a program that reads more reads a data set, which decides nothing."""

_SYSTEM = {"proc", "sys", "dev", "etc", "usr"}
"""Folders at the root that hold no user's data."""

_WRITING = os.O_WRONLY | os.O_RDWR


class Opened:
    """Notes the files that this process opens."""

    def __init__(self) -> None:
        self._read: dict[str, None] = {}
        self._written: set[str] = set()

    def heard(self, event: str, arguments: tuple[Any, ...]) -> None:
        """An audit hook, which must not raise and should take no time."""
        if event != "open":
            return
        path, mode, flags = arguments
        if not isinstance(path, str):
            return
        writes = any(char in mode for char in "wax+") if isinstance(mode, str) else bool(flags & _WRITING)
        if writes:
            self._written.add(path)
        elif len(self._read) < 50 * MOST:
            self._read[path] = None

    def forget(self) -> None:
        """Begin anew: what was opened so far was not the program's doing."""
        self._read.clear()
        self._written.clear()

    def files(self, is_user: Callable[[str], bool]) -> tuple[str, ...]:
        """The user's files that were read and not written, as absolute paths; hidden ones are tools' own business."""
        written = set(map(os.path.abspath, self._written))
        found = dict.fromkeys(map(os.path.abspath, self._read))
        return tuple(sorted(self._wanted(found, written, is_user)))[:MOST]

    def _wanted(self, found: dict[str, None], written: set[str], is_user: Callable[[str], bool]) -> Iterator[str]:
        for path in found:
            parts = Path(path).parts
            hidden = any(part.startswith(".") or part == "__pycache__" for part in parts)
            system = not _SYSTEM.isdisjoint(parts[1:2])
            if not hidden and not system and path not in written and os.path.isfile(path) and is_user(path):  # noqa: PTH113
                yield path


@functools.cache
def record() -> Opened:
    """The record of this process, from the first call on; there is one, as an audit hook cannot be taken back."""
    opened = Opened()
    sys.addaudithook(opened.heard)
    return opened
