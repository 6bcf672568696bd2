"""Wider numbers than the model's own that leak into a graph.

A float64 or complex tensor that meets a narrower one makes the result wide, and everything after it.  Only the meeting
is told: asking for float64 is no leak, and what follows from an earlier leak is no new one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import torch
from torch import fx

from inductoscope.compiler.capture import nodes
from inductoscope.compiler.usercode import Frame, UserCode

_WIDE = frozenset({torch.float64, torch.complex64, torch.complex128})
_WIDTH: Mapping[torch.dtype, int] = {
    torch.float16: 2,
    torch.bfloat16: 2,
    torch.float32: 4,
    torch.float64: 8,
    torch.complex64: 8,
    torch.complex128: 16,
}


@dataclass(frozen=True)
class Leak:
    """The line where `narrow` numbers become `wide` ones, because of a wide tensor that came in there."""

    at: Frame
    wide: str
    narrow: str


def leaks(module: fx.GraphModule, user_code: UserCode) -> Iterator[Leak]:
    """Each place where wide numbers leak in, in the graph's order."""
    spoilt: set[fx.Node] = set()
    for node in nodes.calls(module):
        result = _dtype(node)
        if result not in _WIDE:
            continue
        given = [source for source in node.all_input_nodes if _dtype(source) in _WIDTH]
        if any(source in spoilt for source in given):
            spoilt.add(node)
            continue
        narrow = _met(node, result, given)
        if narrow is None:
            continue
        spoilt.add(node)
        if at := user_code.innermost(nodes.stack(node)):
            yield Leak(at, _name(result), _name(narrow))


def _met(node: fx.Node, result: torch.dtype, given: list[fx.Node]) -> torch.dtype | None:
    """The narrower type that a wide operand of the same kind as the result widened here."""
    types = [dtype for source in given if (dtype := _dtype(source)) is not None]
    narrow = [dtype for dtype in types if _WIDTH[dtype] < _WIDTH[result]]
    wide = [dtype for dtype in types if dtype in _WIDE and dtype.is_complex == result.is_complex]
    return narrow[0] if wide and narrow else None


def _dtype(node: fx.Node) -> torch.dtype | None:
    value = node.meta.get("example_value")
    return value.dtype if isinstance(value, torch.Tensor) else None


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
