"""Loops and recursive calls that Dynamo unrolled into a large graph.

Dynamo runs Python loops and calls while it traces, so each round leaves its own copy of the operators.
"""

from __future__ import annotations

import enum
import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from torch import fx

from inductoscope.compiler.capture import nodes
from inductoscope.compiler.capture.syntax import function_at, loops_at
from inductoscope.compiler.usercode import Frame, UserCode

# From here on a repetition is worth a hint.  Compile time grows at least in proportion to the number of operators; a
# few hundred cost a second or more in Inductor.  A stack of layers is meant to be a large graph, so it gets more room.
_TIMES = 20
_OPERATORS = 200
_OPERATORS_IN_LAYERS = 500


class Kind(enum.Enum):
    """What makes Dynamo go through the same code again."""

    LOOP = enum.auto()
    RECURSION = enum.auto()


@dataclass(frozen=True)
class Repetition:
    """The line of a loop, or of a call that leads back into the function that it stands in."""

    kind: Kind
    file: str
    line: int


@dataclass(frozen=True)
class Unrolled:
    """Code that stands `times` times in a graph, `ops` of the graph's `total` operators."""

    by: Repetition
    times: int
    ops: int
    total: int


@dataclass
class _Copies:
    """What a repetition left in the graph: all its operators, and those that count its rounds by their origin.

    For a loop these are the ones with no further loop below it.
    """

    ops: int = 0
    by_origin: Counter[tuple[str, str]] = field(default_factory=Counter)
    modules: dict[tuple[str, str], set[str]] = field(default_factory=dict)

    def times(self) -> int:
        return statistics.mode(self.by_origin.values()) if self.by_origin else 0

    def over_layers(self) -> bool:
        """Whether each round used a module of its own, as a loop over a ModuleList does."""
        return any(len(self.modules[origin]) == count for origin, count in self.by_origin.items() if count > 1)


def unrolled(module: fx.GraphModule, user_code: UserCode) -> Unrolled | None:
    """The loop or call that makes most of a large graph, None where there is none worth telling."""
    found: dict[Repetition, _Copies] = {}
    total = 0
    for node in nodes.calls(module):
        total += 1
        frames = tuple(frame for frame in nodes.stack(node) if user_code.is_user(frame.file))
        around, again = _loops(frames), _recursive_calls(frames)
        for one in (*around, *again):
            found.setdefault(one, _Copies()).ops += 1
        if around:
            _note(found[around[-1]], node, node.stack_trace or "")
        for call in again:
            _note(found[call], node, str(frames[-1]))  # the calls above differ with each round
    large = [(one, copies) for one, copies in found.items() if _is_large(copies)]
    if not large:
        return None
    by, copies = max(large, key=lambda pair: (pair[1].ops, pair[1].times()))
    return Unrolled(by, copies.times(), copies.ops, total)


@lru_cache(maxsize=4096)
def _loops(frames: Sequence[Frame]) -> Sequence[Repetition]:
    """The loops that the frames of a node stand in, outermost first.

    A comprehension is a function of its own up to Python 3.11, so that two frames may stand at the same one.
    """
    blocks = dict.fromkeys(loop for frame in frames for loop in loops_at(frame.file, frame.line))
    return tuple(Repetition(Kind.LOOP, block.file, block.line) for block in blocks)


@lru_cache(maxsize=4096)
def _recursive_calls(frames: Sequence[Frame]) -> Sequence[Repetition]:
    """The lines in the frames of a node that call, directly or not, the function that they stand in."""
    return tuple(dict.fromkeys(_returning(frames)))


def _returning(frames: Sequence[Frame]) -> Iterator[Repetition]:
    if len({frame.function for frame in frames}) == len(frames):
        return  # each function once: the usual case, told without reading source
    functions = [function_at(frame.file, frame.line) for frame in frames]
    for at, function in enumerate(functions):
        if function is not None and function in functions[at + 1 :]:
            yield Repetition(Kind.RECURSION, frames[at].file, frames[at].line)


def _note(copies: _Copies, node: fx.Node, origin_of: str) -> None:
    origin = (origin_of, str(node.target))
    copies.by_origin[origin] += 1
    path = [str(entry[0]) for entry in (node.meta.get("nn_module_stack") or {}).values()]
    copies.modules.setdefault(origin, set()).add(path[-1] if path else "")


def _is_large(copies: _Copies) -> bool:
    least = _OPERATORS_IN_LAYERS if copies.over_layers() else _OPERATORS
    return copies.times() >= _TIMES and copies.ops >= least
