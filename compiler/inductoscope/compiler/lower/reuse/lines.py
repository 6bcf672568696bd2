"""The lines of source that a captured graph comes from, numbered, so that facts can move with them.

A fact of an earlier run names its lines by number; the same number in the present graph is the line where the same
node stands now.  Two graphs whose `shape` is equal have, node by node, the same functions on their stacks, share lines
among their nodes in the same way, and have them in the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from torch import fx

from inductoscope.compiler.compat import inductor as compat
from inductoscope.compiler.lower.places import frames
from inductoscope.protocol.report import Place

_MARK = "\0"  # no file's name begins with it

KindOf = Callable[[str], str]
"""What sort of file it is: facts are read off stacks by whose the frames are."""


class NoSuchLineError(LookupError):
    """A fact names a line that no node of the graph comes from, so that nobody knows where it goes."""


@dataclass(frozen=True)
class Lines:
    """The lines of one graph in order of file and line, and the `shape` that they give the graph."""

    known: tuple[tuple[str, int], ...]
    shape: str

    @classmethod
    def of(cls, nodes: list[fx.Node], kind_of: KindOf) -> Lines:
        """Those on the stacks of all nodes, and those where the modules of torch that nodes come from begin."""
        stacks = [list(_places(node)) for node in nodes]
        known = sorted({(place.file, place.line) for stack in stacks for place in stack})
        number = {line: at for at, line in enumerate(known)}
        kinds = {file: kind_of(file) for file in {file for file, _ in known}}
        shape = (
            ",".join(f"{number[place.file, place.line]} {kinds[place.file]} {place.function}" for place in stack)
            for stack in stacks
        )
        return cls(tuple(known), "\n".join(shape))

    def numbered(self, value: Any) -> Any:
        """JSON with every line of a file given by number.  Raises `NoSuchLineError`."""
        number = {line: at for at, line in enumerate(self.known)}

        def of(file: str, line: int) -> tuple[str, int]:
            if (file, line) not in number:
                raise NoSuchLineError(f"line {line} of {file} is on no stack of the graph")
            return _MARK, number[file, line]

        return _moved(value, of)

    def placed(self, value: Any) -> Any:
        """The opposite: JSON whose lines are those of this graph.  Raises `NoSuchLineError`."""

        def of(file: str, number: int) -> tuple[str, int]:
            if file != _MARK or not 0 <= number < len(self.known):
                raise NoSuchLineError(f"there is no line {number} of {file!r} in the graph")
            return self.known[number]

        return _moved(value, of)


def _places(node: fx.Node) -> Iterator[Place]:
    stack = node.meta.get("stack_trace")
    yield from frames(stack if isinstance(stack, str) else None)
    yield from compat.module_forwards(node)


def _moved(value: Any, of: Callable[[str, int], tuple[str, int]]) -> Any:
    if isinstance(value, list):
        return [_moved(item, of) for item in value]
    if not isinstance(value, dict):
        return value
    moved = {key: _moved(item, of) for key, item in value.items()} if _has_parts(value) else dict(value)
    if isinstance(value.get("file"), str) and isinstance(value.get("line"), int):
        moved["file"], moved["line"] = of(value["file"], value["line"])
    return moved


def _has_parts(value: dict[str, Any]) -> bool:
    return any(isinstance(item, dict | list) for item in value.values())
