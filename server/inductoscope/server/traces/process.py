"""What one process told in its trace: compilations by torch's ids, and how often each kind of record came.

Knows how records belong together, not what each of them means; that is in `kinds`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from inductoscope.server.traces.compilations import Compilation, Frame, original_name
from inductoscope.server.traces.stretches import Stretches


@dataclass
class Process:
    """One process: everything that is known of it so far."""

    file: Path
    number: int
    rank: int | None = None
    torch: str | None = None
    python: str | None = None
    triton: str | None = None
    first: str = ""
    date: str = ""
    last: str = ""
    began_s: float | None = None
    command: tuple[str, ...] = ()
    compilations: list[Compilation] = field(default_factory=list)
    records: Counter[str] = field(default_factory=Counter)
    unknown: Counter[str] = field(default_factory=Counter)
    loose: Counter[str] = field(default_factory=Counter)
    damaged: int = 0
    events: Stretches = field(default_factory=Stretches)
    links: list[tuple[str, str]] = field(default_factory=list)
    limits: list[Mapping[str, Any]] = field(default_factory=list)
    skipped: list[Mapping[str, Any]] = field(default_factory=list)
    functions: dict[str, Frame] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)
    _current: dict[str, Compilation] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """`rank 1`, or `process 4711` where there are no ranks."""
        return f"rank {self.rank}" if self.rank is not None else f"process {self.number}"

    def compilation(self, compile_id: str) -> Compilation:
        """The compilation that this id stands for now."""
        found = self._current.get(compile_id)
        return found if found is not None else self.begin(compile_id)

    def begin(self, compile_id: str) -> Compilation:
        """A new compilation with this id."""
        found = Compilation(compile_id, len(self.compilations))
        found.of = self.functions.get(found.frame_number)
        self._current[compile_id] = found
        self.compilations.append(found)
        return found

    def frames(self, stack: Any) -> tuple[Frame, ...]:
        """A stack of a record, outermost first; what is no frame is left out."""
        entries = stack if isinstance(stack, list) else []
        return tuple(self._frame(entry) for entry in entries if isinstance(entry, Mapping))

    def user_frames(self, stack: Any) -> tuple[Frame, ...]:
        """The program's own frames of a stack."""
        return tuple(frame for frame in self.frames(stack) if frame.is_user)

    def _frame(self, entry: Mapping[str, Any]) -> Frame:
        file, line = entry.get("filename"), entry.get("line")
        function, resumed = original_name(str(entry.get("name") or "?"))
        name = self.names.get(file, "<unknown>") if isinstance(file, int) else str(file or "<unknown>")
        return Frame(name, line if isinstance(line, int) else 1, function, str(entry.get("loc") or ""), resumed)


def ranks(processes: Iterable[Process]) -> dict[int, Process]:
    """The process of each rank, the latest one where there were several runs."""
    return {one.rank: one for one in processes if one.rank is not None}
