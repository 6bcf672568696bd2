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
    GUARDS = "guards"
    PHASES = "phases"
    ALL = "all"


@dataclass(frozen=True)
class View:
    """The parts to show, the folder that paths are from, and a function for source lines (file, 1-based line)."""

    parts: frozenset[Part]
    folder: Path
    source_line: Callable[[str, int], str]

    def has(self, part: Part) -> bool:
        """Whether the part was asked for."""
        return part in self.parts or Part.ALL in self.parts

    def place(self, file: str, line: int) -> str:
        """`model.py:12`."""
        return f"{shown(file, self.folder)}:{line}"
