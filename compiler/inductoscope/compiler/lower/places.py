"""From a graph node to the line of source that it comes from.

The stack that Dynamo recorded for a node is text; the innermost frame in the user's own code is the line to show.
It knows nothing of kernels.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Protocol

import torch

from inductoscope.compiler.compat import inductor as compat
from inductoscope.protocol.report import Place

_FARTHEST = 8  # users of users of a node; far enough for rewritten patterns, near enough to be the same thought
_FRAME = re.compile(r'^\s*File "(?P<file>[^"]+)", line (?P<line>\d+)(?:, in (?P<function>.*))?$', re.MULTILINE)


class Ownership(Protocol):
    """What `usercode.UserCode` tells: whose file this is."""

    def is_user(self, file: str) -> bool:
        """Whether the file belongs to the user."""


def frames(stack: str | None) -> list[Place]:
    """The frames in a formatted stack, outermost first."""
    found = _FRAME.finditer(stack or "")
    return [Place(m["file"], int(m["line"]), (m["function"] or "").strip() or None) for m in found]


class Places:
    """Finds and remembers the place of each node."""

    def __init__(self, user_code: Ownership) -> None:
        self._user_code = user_code
        self._torch = torch.__path__[0]
        self._known: dict[str, Place | None] = {}

    def in_stack(self, stack: str | None) -> Place | None:
        """The innermost frame of a formatted stack that is in the user's code."""
        if not stack:
            return None
        if stack not in self._known:
            mine = [frame for frame in frames(stack) if self._user_code.is_user(frame.file)]
            self._known[stack] = mine[-1] if mine else None
        return self._known[stack]

    def chain(self, stack: str | None) -> tuple[Place, ...]:
        """All frames of a formatted stack that are in the user's code, outermost first."""
        return tuple(frame for frame in frames(stack) if self._user_code.is_user(frame.file))

    def of(self, node: torch.fx.Node | None) -> Place | None:
        """The user's line behind a graph node, or None where torch did not record one."""
        return self.in_stack(stack_of(node))

    def library(self, node: torch.fx.Node | None) -> Place | None:
        """The innermost line outside the user's code that tells more than the user's own line.

        Third-party code where there is any; torch's own (`torch/nn/modules`) only where no user line stands behind the
        node, as when a module of torch is compiled as it is; then Dynamo records the module and no line of its code.
        """
        found = [frame for frame in reversed(frames(stack_of(node))) if not self._user_code.is_user(frame.file)]
        third_party = next((frame for frame in found if not frame.file.startswith(self._torch)), None)
        if third_party is not None or node is None or self.of(node) is not None:
            return third_party
        return found[0] if found else compat.module_forward(node)

    def kind_of_library(self, file: str) -> str:
        """Whose a file is that is not the user's."""
        return "torch" if file.startswith(self._torch) else "library"

    def nearest(self, node: torch.fx.Node | None) -> Place | None:
        """The user's line behind a node, else the library's."""
        return self.of(node) or self.library(node)


def stack_of(node: torch.fx.Node | None) -> str | None:
    """The formatted stack that a node carries."""
    stack = on_whose_behalf(node).meta.get("stack_trace") if node is not None else None
    return stack if isinstance(stack, str) else None


def on_whose_behalf(node: torch.fx.Node) -> torch.fx.Node:
    """The operator that work without a line of its own is done for, or the node itself.

    Passes put in nodes that no line of the program asked for.  Writing a result back into an input belongs to what made
    the result; anything else (a constant, an input in another layout, a rewritten softmax) to what first uses it.
    """
    steps = 0
    while node.meta.get("stack_trace") is None and steps < _FARTHEST:
        if node.target is torch.ops.aten.copy_.default and isinstance(node.args[1], torch.fx.Node):
            return node.args[1]
        user = next(iter(node.users), None)
        if user is None:
            break
        node, steps = user, steps + 1
    return node


def distinct(places: Iterable[Place | None]) -> tuple[Place, ...]:
    """The places without repetition, in order of file and line."""
    return tuple(sorted(_unique(places), key=lambda place: (place.file, place.line)))


def _unique(places: Iterable[Place | None]) -> Iterator[Place]:
    seen: set[tuple[str, int]] = set()
    for place in places:
        if place is not None and (place.file, place.line) not in seen:
            seen.add((place.file, place.line))
            yield place
