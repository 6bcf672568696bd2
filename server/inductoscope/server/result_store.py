"""Results of earlier runs on disk: a file for each, named by a hash of what it is about.

Several servers and command lines use one folder at once.  A file appears whole or not at all (renamed into place); one
that is damaged, foreign or of another format is removed and taken as not there.  What was used longest ago goes first
when there is too much.  Knows nothing of what the results say.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import platformdirs

from inductoscope.protocol import kept_files
from inductoscope.protocol.kept_files import KeptFile

logger = logging.getLogger("inductoscope.results")

BUDGET = 256 << 20
"""Bytes on disk: some thousands of results, as a report of a hundred kernels takes 50 to 100 kB."""

VARIANTS = 4
"""Results under one key that differ in something that can only be told after looking into them."""

_MAGIC = b"inductoscope result 1\n"
_SUFFIX = ".result"
_KEY = re.compile(r"[0-9a-f]{16,64}")
_LARGEST_SHARE = 8
"""No result may take more than this part (one over it) of the budget."""
_LARGEST_TEXT = 256 << 20
"""Bytes of a result after decompression: a file that claims more is damaged or meant to harm."""


@dataclass(frozen=True)
class Usage:
    """How much the folder holds: results, and their bytes on disk; `oldest` is the time (Unix) of the last use of the
    one that was not used for longest."""

    results: int
    size: int
    oldest: float | None = None


@dataclass(frozen=True)
class ResultStore:
    """The results in `folder`, which is made when something is kept, up to `budget` bytes."""

    folder: Path
    budget: int = BUDGET

    def find(self, key: str) -> Iterator[tuple[str, Any]]:
        """What is kept under a key: a name to `touch` or `drop` it by and its JSON value, the newest first."""
        files = sorted((file for file in self._files(f"{key[:2]}/{_checked(key)}-*")), key=lambda file: -file.used)
        for file in files:
            value = self._read(file.path)
            if value is not None:
                yield file.path.name, value

    def put(self, key: str, variant: str, value: Any) -> None:
        """Keep a JSON value in place of what has this key and `variant`; a disk that refuses is told to the log."""
        content = zlib.compress(json.dumps(value, separators=(",", ":")).encode(), 6)
        if len(content) > self.budget // _LARGEST_SHARE:
            logger.info("a result is too large to be kept: key=%s bytes=%d", key, len(content))
            return
        path = self._path(f"{_checked(key)}-{_checked(variant)[:16]}{_SUFFIX}")
        try:
            with kept_files.writing(path) as file:
                file.write(_MAGIC + hashlib.sha256(content).digest() + content)
            self._trim(key)
        except OSError as error:
            logger.warning(
                "The result of a run is not kept, as %s cannot be written (%s); free some space, or go on without.",
                self.folder,
                error.strerror or error,
            )

    def touch(self, name: str) -> None:
        """A result was of use."""
        with contextlib.suppress(OSError):
            os.utime(self._path(name))

    def drop(self, name: str) -> None:
        """A result is of no use to anybody."""
        kept_files.remove(self._path(name))

    def usage(self) -> Usage:
        """What there is."""
        files = list(self._files("*/*"))
        return Usage(len(files), sum(file.size for file in files), min((file.used for file in files), default=None))

    def clear(self) -> Usage:
        """Remove everything; returns what that was."""
        usage = self.usage()
        for file in self._files("*/*"):
            kept_files.remove(file.path)
        return usage

    def _read(self, path: Path) -> Any:
        try:
            content = path.read_bytes()
        except OSError:
            return None
        digest, packed = content[len(_MAGIC) :][:32], content[len(_MAGIC) + 32 :]
        try:
            if not content.startswith(_MAGIC) or hashlib.sha256(packed).digest() != digest:
                raise ValueError
            unpacking = zlib.decompressobj()
            text = unpacking.decompress(packed, _LARGEST_TEXT)
            if not unpacking.eof:
                raise ValueError
            return json.loads(text)
        except (ValueError, zlib.error, RecursionError):
            logger.info("removing a damaged or foreign result: %s", path)
            kept_files.remove(path)
            return None

    def _trim(self, key: str) -> None:
        """Remove the results of a key beyond `VARIANTS`, and of all keys beyond the budget."""
        variants = sorted(self._files(f"{key[:2]}/{key}-*"), key=lambda file: -file.used)
        for file in variants[VARIANTS:]:
            kept_files.remove(file.path)
        kept_files.trim(self._files("*/*"), self.budget)

    def _files(self, pattern: str) -> Iterator[KeptFile]:
        return kept_files.kept(self.folder, pattern, _SUFFIX)

    def _path(self, name: str) -> Path:
        return self.folder / name[:2] / name


def users() -> ResultStore:
    """Where this machine's user keeps results."""
    return ResultStore(Path(platformdirs.user_cache_dir("inductoscope")) / "results")


def _checked(key: str) -> str:
    """Raises `ValueError` for what is no hash, so that no key can name a file elsewhere."""
    if not _KEY.fullmatch(key):
        raise ValueError(f"{key!r} is no key of a result")
    return key
