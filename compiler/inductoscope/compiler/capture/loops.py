"""Loops that Dynamo unrolled into a large graph.

Dynamo runs Python loops while it traces, so each round leaves its own copy of the operators.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from torch import fx

from inductoscope.compiler.capture import nodes
from inductoscope.compiler.capture.syntax import Block, loops_at
from inductoscope.compiler.usercode import UserCode

# From here on a loop is worth a hint.  Compile time grows at least in proportion to the number of operators; a few
# hundred cost a second or more in Inductor.  A stack of layers is meant to be a large graph, so it gets more room.
_TIMES = 20
_OPERATORS = 200
_OPERATORS_IN_LAYERS = 500


@dataclass(frozen=True)
class Unrolled:
    """A loop whose body stands `times` times in a graph, `ops` of the graph's `total` operators."""

    loop: Block
    times: int
    ops: int
    total: int


@dataclass
class _Copies:
    """What a loop left in the graph: all its operators, and those with no further loop below it by their origin."""

    ops: int = 0
    by_origin: Counter[tuple[str, str]] = field(default_factory=Counter)
    modules: dict[tuple[str, str], set[str]] = field(default_factory=dict)

    def times(self) -> int:
        return statistics.mode(self.by_origin.values()) if self.by_origin else 0

    def over_layers(self) -> bool:
        """Whether each round used a module of its own, as a loop over a ModuleList does."""
        return any(len(self.modules[origin]) == count for origin, count in self.by_origin.items() if count > 1)


def unrolled(module: fx.GraphModule, user_code: UserCode) -> Unrolled | None:
    """The loop that makes most of a large graph, None where there is none worth telling."""
    found: dict[Block, _Copies] = {}
    total = 0
    for node in nodes.calls(module):
        total += 1
        around = _loops(node, user_code)
        for loop in around:
            found.setdefault(loop, _Copies()).ops += 1
        if around:
            _note(found[around[-1]], node)
    large = [(loop, copies) for loop, copies in found.items() if _is_large(copies)]
    if not large:
        return None
    loop, copies = max(large, key=lambda pair: (pair[1].ops, pair[1].times()))
    return Unrolled(loop, copies.times(), copies.ops, total)


def _loops(node: fx.Node, user_code: UserCode) -> Sequence[Block]:
    """The user's loops that a node was traced in, outermost first.

    A comprehension is a function of its own up to Python 3.11, so that two frames may stand at the same one.
    """
    frames = (frame for frame in nodes.stack(node) if user_code.is_user(frame.file))
    return tuple(dict.fromkeys(loop for frame in frames for loop in loops_at(frame.file, frame.line)))


def _note(copies: _Copies, node: fx.Node) -> None:
    origin = (node.stack_trace or "", str(node.target))
    copies.by_origin[origin] += 1
    path = [str(entry[0]) for entry in (node.meta.get("nn_module_stack") or {}).values()]
    copies.modules.setdefault(origin, set()).add(path[-1] if path else "")


def _is_large(copies: _Copies) -> bool:
    least = _OPERATORS_IN_LAYERS if copies.over_layers() else _OPERATORS
    return copies.times() >= _TIMES and copies.ops >= least
