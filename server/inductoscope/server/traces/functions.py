"""Which compilations are of one function: every version of it, and of what follows a graph break in it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from inductoscope.server.traces.compilations import Compilation, Frame
from inductoscope.server.traces.process import Process


@dataclass(frozen=True)
class Key:
    """A function as the trace names it: `line` is where it starts."""

    file: str
    line: int
    function: str

    @property
    def frame(self) -> Frame:
        """Its start."""
        return Frame(self.file, self.line, self.function)


def by_function(processes: Iterable[Process]) -> dict[Key, list[Compilation]]:
    """The compilations of each function, in order; those of no function (compiled autograd) are left out."""
    compilations = [one for process in processes for one in process.compilations if one.id != "-"]
    starts = _starts(compilations)
    found: dict[Key, list[Compilation]] = {}
    for one in compilations:
        key = _key(one, starts)
        if key is not None:
            found.setdefault(key, []).append(one)
    return found


def _starts(compilations: Iterable[Compilation]) -> dict[tuple[str, str], set[int]]:
    """Where functions begin, by file and name; the metrics know it of what follows a break, too."""
    found: dict[tuple[str, str], set[int]] = {}
    for one in compilations:
        function = one.function
        if not function.resumed and function.file != "<unknown>":
            found.setdefault((function.file, function.function), set()).add(function.line)
    return found


def _key(one: Compilation, starts: dict[tuple[str, str], set[int]]) -> Key | None:
    function = one.function
    if function.file == "<unknown>":
        return None
    line = function.line
    if function.resumed:
        above = [start for start in starts.get((function.file, function.function), ()) if start <= line]
        line = max(above, default=line)
    return Key(function.file, line, function.function)
