"""Where the parts of a program went when its text was laid out anew: positions in two texts that mean the same.

Both syntax trees have the same nodes in the same order, so each node of the older text is found in the newer one,
however lines were joined, split or commented.  What is no node (a comment, a closing bracket) goes with its neighbours.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from inductoscope.server import meaning, shift
from inductoscope.server.positions import Text
from inductoscope.server.shift import Shift

Position = tuple[int, int]
"""A line (1-based) and a column in code points (0-based)."""


@dataclass(frozen=True)
class Alignment:
    """Positions of the text `old` in the text `new`, which means the same."""

    old: Text
    new: Text

    def line(self, line: int) -> int:
        """Where `line` is now."""
        found = self._lines.get(line) or self._shift.forward(line)
        if found is not None:
            return found
        above = next((known for known in range(line - 1, 0, -1) if known in self._lines), None)
        return self._shift.near(line) if above is None else min(self._lines[above] + line - above, len(self.new.lines))

    def position(self, line: int, column: int) -> Position:
        """Where a place is now; exact for the start and the end of a name, a call or whatever else is a node."""
        return self._positions.get((line, column)) or (self.line(line), column)

    @cached_property
    def _shift(self) -> Shift:
        return shift.between(self.old, self.new)

    @cached_property
    def _lines(self) -> dict[int, int]:
        lines: dict[int, int] = {}
        for (then, _), (now, _) in self._positions.items():
            lines.setdefault(then, now)
        return lines

    @cached_property
    def _positions(self) -> dict[Position, Position]:
        then, now = (list(_places(text)) for text in (self.old, self.new))
        positions: dict[Position, Position] = {}
        for before, after in zip(then, now, strict=True) if len(then) == len(now) else ():
            positions.setdefault(before, after)
        return positions


def _places(text: Text) -> Iterator[Position]:
    """The starts of all nodes of a text, outer ones first, and after them the ends; nothing for what is no Python."""
    tree = meaning.tree(text.source) if len(text.source) <= meaning.LARGE else None
    nodes = [] if tree is None else [node for node in ast.walk(tree) if isinstance(node, _PLACED)]
    for node in nodes:
        yield _position(text, node.lineno, node.col_offset)
    for node in nodes:
        yield _position(text, node.end_lineno or node.lineno, node.end_col_offset or node.col_offset)


_PLACED = (ast.stmt, ast.expr, ast.excepthandler, ast.arg, ast.keyword, ast.alias)


def _position(text: Text, line: int, offset: int) -> Position:
    """A position whose column is counted in UTF-8 bytes, as syntax trees do."""
    said = text.line(line)
    return (line, offset if said.isascii() else len(said.encode()[:offset].decode(errors="ignore")))
