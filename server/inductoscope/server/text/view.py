"""What a person asked to see, and how places read from where they are."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from inductoscope.server.paths import shown


class Part(enum.Enum):
    """What can be asked for beyond the usual."""

    KERNELS = "kernels"
    BACKWARD = "backward"
    GRAPHS = "graphs"
    GUARDS = "guards"
    PHASES = "phases"
    CACHES = "caches"
    PASSES = "passes"
    FUSION = "fusion"
    CONFIGS = "configs"
    TTIR = "ttir"
    TTGIR = "ttgir"
    LLIR = "llir"
    PTX = "ptx"
    SASS = "sass"
    AMDGCN = "amdgcn"
    ALL = "all"


ARTIFACTS = (Part.TTIR, Part.TTGIR, Part.LLIR, Part.PTX, Part.SASS, Part.AMDGCN)
"""What the compiler makes of a kernel, by stage; too long to be a part of `all`."""


class PartError(ValueError):
    """A part that does not exist; the message is a sentence."""


def parts(text: str) -> frozenset[Part]:
    """The parts in a list such as `kernels,guards`.  Raises `PartError`."""
    known = {part.value: part for part in Part}
    names = [name for name in (part.strip() for part in text.split(",")) if name]
    unknown = [name for name in names if name not in known]
    if unknown:
        raise PartError(f"--show {unknown[0]} is none of {', '.join(known)}.")
    return frozenset(known[name] for name in names)


@dataclass(frozen=True)
class View:
    """The parts to show, the folder that paths are from, and a function for source lines (file, 1-based line).

    `kernel` is a part of the names of the kernels to show; None shows all.
    """

    parts: frozenset[Part]
    folder: Path
    source_line: Callable[[str, int], str]
    kernel: str | None = None

    def has(self, part: Part) -> bool:
        """Whether the part was asked for."""
        return part in self.parts or (Part.ALL in self.parts and part not in ARTIFACTS)

    def wants(self, kernel: str) -> bool:
        """Whether a kernel of that name is to be shown."""
        return self.kernel is None or self.kernel in kernel

    def place(self, file: str, line: int) -> str:
        """`model.py:12`."""
        return f"{self.file(file)}:{line}"

    def file(self, path: str) -> str:
        """A file as read from the folder."""
        return shown(path, self.folder)
