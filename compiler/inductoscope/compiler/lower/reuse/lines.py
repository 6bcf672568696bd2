"""The lines of source that a captured graph comes from, numbered, so that facts can move with them.

A fact of an earlier run names its lines by number; the same number in the present graph is the line where the same
node stands now.  Two graphs whose `shape` is equal have, node by node, the same functions on their stacks, share lines
among their nodes in the same way, and have them in the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from torch import fx

from inductoscope.compiler.compat import inductor as compat
from inductoscope.compiler.compat.dynamo_stacks import original_name
from inductoscope.compiler.lower.places import frames
from inductoscope.protocol.report import Place

_MARK = "\0"  # no file's name begins with it

KindOf = Callable[[str], str]
"""What sort of file it is: facts are read off stacks by whose the frames are."""


class NoSuchLineError(LookupError):
    """A fact names a line that no node of the graph comes from, so that nobody knows where it goes."""


@dataclass(frozen=True)
class Lines:
    """The lines of one graph in order of file and line, and the `shape` that they give the graph.

    `resumed` are the names of functions that Dynamo made of the rest of a function after a break, by line and by the
    name of that function: they hold the number of the line that broke.  None where a line has several.
    """

    known: tuple[tuple[str, int], ...]
    shape: str
    resumed: Mapping[tuple[str, int, str], str | None]

    @classmethod
    def of(cls, nodes: list[fx.Node], kind_of: KindOf) -> Lines:
        """Those on the stacks of all nodes, and those where the modules of torch that nodes come from begin."""
        stacks = [list(_places(node)) for node in nodes]
        known = sorted({(place.file, place.line) for stack in stacks for place in stack})
        number = {line: at for at, line in enumerate(known)}
        kinds = {file: kind_of(file) for file in {file for file, _ in known}}
        shape = (
            ", ".join(f"{number[one.file, one.line]} {kinds[one.file]} {_original(one.function)}" for one in stack)
            for stack in stacks
        )
        return cls(tuple(known), "\n".join(shape), _resumed(stacks))

    def numbered(self, value: Any) -> Any:
        """JSON with every line of a file given by number.  Raises `NoSuchLineError`."""
        number = {line: at for at, line in enumerate(self.known)}

        def of(place: Place) -> Place:
            line = place.file, place.line
            if line not in number:
                raise NoSuchLineError(f"line {place.line} of {place.file} is on no stack of the graph")
            function = _original(place.function)
            if function != place.function and self.resumed.get((*line, str(function))) != place.function:
                raise NoSuchLineError(f"{place.function} is not the only rest of a function on line {place.line}")
            return Place(_MARK, number[line], place.function if function == place.function else f"{_MARK}{function}")

        return _moved(value, of)

    def placed(self, value: Any) -> Any:
        """The opposite: JSON whose lines are those of this graph.  Raises `NoSuchLineError`."""

        def of(place: Place) -> Place:
            if place.file != _MARK or not 0 <= place.line < len(self.known):
                raise NoSuchLineError(f"there is no line {place.line} of {place.file!r} in the graph")
            file, line = self.known[place.line]
            function = place.function
            if function is not None and function.startswith(_MARK):
                function = self.resumed.get((file, line, function.removeprefix(_MARK)))
                if function is None:
                    raise NoSuchLineError(f"line {line} is in several rests of a function")
            return Place(file, line, function)

        return _moved(value, of)


def _places(node: fx.Node) -> Iterator[Place]:
    stack = node.meta.get("stack_trace")
    yield from frames(stack if isinstance(stack, str) else None)
    yield from compat.module_forwards(node)


def _resumed(stacks: Iterable[Iterable[Place]]) -> dict[tuple[str, int, str], str | None]:
    found: dict[tuple[str, int, str], str | None] = {}
    for place in (place for stack in stacks for place in stack):
        function = _original(place.function)
        if function is not None and function != place.function:
            at = place.file, place.line, function
            found[at] = place.function if found.get(at, place.function) == place.function else None
    return found


def _original(function: str | None) -> str | None:
    """The name of the function that Dynamo made the rest of, marked as such; any other name itself."""
    if function is None:
        return None
    name, resumes = original_name(function)
    return f"{name} (resumed)" if resumes else function


def _moved(value: Any, of: Callable[[Place], Place]) -> Any:
    if isinstance(value, list):
        return [_moved(item, of) for item in value]
    if not isinstance(value, dict):
        return value
    moved = {key: _moved(item, of) for key, item in value.items()} if _has_parts(value) else dict(value)
    if isinstance(value.get("file"), str) and isinstance(value.get("line"), int):
        place = of(Place(value["file"], value["line"], value.get("function")))
        moved["file"], moved["line"] = place.file, place.line
        if "function" in moved:
            moved["function"] = place.function
    return moved


def _has_parts(value: dict[str, Any]) -> bool:
    return any(isinstance(item, dict | list) for item in value.values())
