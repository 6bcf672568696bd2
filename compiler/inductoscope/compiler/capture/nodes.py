"""Where a node of a captured graph comes from in the user's source."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from torch import fx

from inductoscope.compiler.usercode import Frame

_STACK_LINE = re.compile(r'^ *File "(?P<file>.+)", line (?P<line>\d+), in (?P<function>.+)$', re.M)
_CALLS = frozenset({"call_function", "call_method", "call_module"})


def calls(module: fx.GraphModule) -> Iterator[fx.Node]:
    """The nodes that torch counts as operators."""
    return (node for node in module.graph.nodes if node.op in _CALLS)


def stack(node: fx.Node) -> tuple[Frame, ...]:
    """The traced frames that made a node, outermost first; empty where Dynamo kept none."""
    return _read(node.stack_trace or "")


@lru_cache(maxsize=4096)
def _read(text: str) -> tuple[Frame, ...]:
    return tuple(Frame(m["file"], int(m["line"]), m["function"]) for m in _STACK_LINE.finditer(text))
