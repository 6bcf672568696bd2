"""What workers want to be told again by later runs, kept on disk as small files.

The texts are the workers' own business.  A memory that cannot be read or written is a run that is told nothing; what is
not asked for within a month is dropped.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from inductoscope.protocol.messages import Memory

LONGEST = 4 * 1024 * 1024
"""Bytes of a text that is kept; a program of hundreds of graphs stays below."""

DROPPED_AFTER_S = 30 * 24 * 3600.0


@dataclass(frozen=True)
class MemoryStore:
    """Memories in the folder `folder`, which is made when something is kept."""

    folder: Path

    def recall(self, interpreter: str, target: str, device: str) -> Memory:
        """What is to be told a run of the target `target` (its key) on `device` in `interpreter`."""
        return Memory(self._read("target", interpreter, target, device), self._read("interpreter", interpreter))

    def keep(self, memory: Memory, interpreter: str, target: str, device: str) -> None:
        """Keep what such a run wants to be told next time."""
        with contextlib.suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            self._write(memory.target, "target", interpreter, target, device)
            self._write(memory.interpreter, "interpreter", interpreter)
            self._forget_old()

    def _read(self, *about: str) -> str:
        try:
            return self._file(about).read_text(encoding="utf-8")
        except (OSError, ValueError):
            return ""

    def _write(self, text: str, *about: str) -> None:
        """Whoever reads meanwhile sees the old text or the new one."""
        if not text or len(text) > LONGEST:
            return
        descriptor, name = tempfile.mkstemp(dir=self.folder, suffix=".tmp")
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(text)
            Path(name).replace(self._file(about))
        except OSError:  # a full disk would fill up with such files
            Path(name).unlink(missing_ok=True)
            raise

    def _file(self, about: tuple[str, ...]) -> Path:
        return self.folder / hashlib.sha256("\0".join(about).encode()).hexdigest()[:32]

    def _forget_old(self) -> None:
        for file in self.folder.iterdir():
            if time.time() - file.stat().st_mtime > DROPPED_AFTER_S:
                file.unlink(missing_ok=True)


def users() -> MemoryStore:
    """Where this machine's user keeps them."""
    return MemoryStore(Path(platformdirs.user_cache_dir("inductoscope")) / "runs")
