"""A report about an older layout of a program, told with the lines that its places have now.

Knows which fields of a report are places, and not what the report says.  A message that names a line says the new one.
"""

from __future__ import annotations

import dataclasses
import operator
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from inductoscope.server.alignment import Alignment

T = TypeVar("T")

_BARE = re.compile(r"\b(line )(\d+)\b(?! of )")
_NAMED = re.compile(
    r"(?P<bare>\bline )(?P<line>\d+)(?P<of> of )(?P<name>[\w.-]+\.py)|(?P<file>[\w.-]+\.py):(?P<at>\d+)"
)


def restated(value: T, moves: Mapping[str, Alignment]) -> T:
    """`value`, a part of a report, after the files in `moves` (by path) got another layout."""
    if not moves:
        return value
    moved: T = _Restating(moves).of(value, None)
    return moved


class _Restating:
    def __init__(self, moves: Mapping[str, Alignment]) -> None:
        self._moves = moves
        self._by_name = {Path(path).name: move for path, move in moves.items()}

    def of(self, value: Any, within: Alignment | None) -> Any:
        """`value` restated; `within` is about the file of the object that it is a part of."""
        if isinstance(value, str):
            return self._text(value, within)
        if isinstance(value, tuple):
            items = tuple(self.of(item, within) for item in value)
            return value if all(map(operator.is_, items, value)) else items
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return self._object(value, within)
        return value

    def _object(self, value: Any, within: Alignment | None) -> Any:
        names = tuple(field.name for field in dataclasses.fields(value))
        file = getattr(value, "file", None)
        move = self._moves.get(file) if isinstance(file, str) else within
        parts = ((name, getattr(value, name)) for name in names if name not in _PLACES)
        changes = {name: after for name, before in parts if (after := self.of(before, move)) is not before}
        if move is not None and isinstance(file, str):
            changes.update(_moved(value, names, move))
        return dataclasses.replace(value, **changes) if changes else value

    def _text(self, text: str, within: Alignment | None) -> str:
        if "\n" in text or not any(char.isdigit() for char in text):
            return text  # the source of a kernel has lines of its own
        said = text
        if within is not None:
            said = _BARE.sub(lambda found: f"{found[1]}{within.line(int(found[2]))}", said)
        said = _NAMED.sub(self._named, said)
        return text if said == text else said

    def _named(self, found: re.Match[str]) -> str:
        move = self._by_name.get(found["name"] or found["file"])
        if move is None:
            return found[0]
        if found["at"]:
            return f"{found['file']}:{move.line(int(found['at']))}"
        return f"{found['bare']}{move.line(int(found['line']))}{found['of']}{found['name']}"


_PLACES = {"file", "line", "column", "end_line", "end_column"}


def _moved(value: Any, names: tuple[str, ...], move: Alignment) -> dict[str, int]:
    """The fields of a place, as far as the object has them; an unknown line stays so."""
    changes: dict[str, int] = {}
    for line, column in (("line", "column"), ("end_line", "end_column")):
        then = getattr(value, line, None)
        if not then or line not in names:
            continue
        if column in names:
            changes[line], changes[column] = move.position(then, getattr(value, column))
        else:
            changes[line] = move.line(then)
    return changes
