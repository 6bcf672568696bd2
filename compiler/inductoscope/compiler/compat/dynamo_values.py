"""What Dynamo knows of values while it traces: what a variable or attribute is set to, and the layout of a tensor.

Checked by running on torch 2.11 to 2.15.  Nothing here may ask a question whose answer torch would have to guard on:
symbolic sizes are read as expressions and never compared as numbers.
"""

from __future__ import annotations

import contextlib
import dis
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from inductoscope.compiler.compat import dynamo_stacks as stacks
from inductoscope.compiler.compat.dynamo_trace import harmless
from inductoscope.compiler.usercode import Frame

_STORES = ("STORE_FAST", "STORE_DEREF", "STORE_GLOBAL")  # Dynamo takes CPython's fused stores apart before it traces
_STORE_ATTRIBUTE = "STORE_ATTR"
_NUMBERS = {torch.SymInt: "int", torch.SymFloat: "float", torch.SymBool: "bool"}


@dataclass(frozen=True)
class StoreEvent:
    """A variable or attribute is set while Dynamo traces; `nodes` are the graph nodes of what it is set to.

    One node for a tensor or a symbolic number (`several` is false), any number for a list or tuple of them.  `name` is
    that of the variable, or of the attribute behind its owner as the line says it, else as torch does
    (`L['self'].layers[0].cache`).
    """

    name: str
    at: Frame
    nodes: tuple[torch.fx.Node, ...]
    several: bool
    compile_id: str


@dataclass(frozen=True)
class Size:
    """A size or stride: its expression as torch writes it, and the value it had; None where only the run decides."""

    expression: str
    value: int | None

    @property
    def is_symbolic(self) -> bool:
        """Whether the size is no plain number."""
        return self.expression != str(self.value)


@dataclass(frozen=True)
class Layout:
    """A tensor without its data; `strides` is None for a contiguous one, and where there are none (sparse ones)."""

    dtype: str
    sizes: tuple[Size, ...]
    strides: tuple[Size, ...] | None
    device: str


@contextlib.contextmanager
def stores(callback: Callable[[StoreEvent], None]) -> Iterator[None]:
    """Hand every tensor or symbolic number that something is set to while Dynamo traces to `callback`.

    Dynamo looks instructions up in a table of each translator class (`dispatch_table`, 2.1 to 2.15), so the entries are
    replaced there.  The top of its stack is looked at and never realized: that would add guards.
    """
    replaced: list[tuple[list[Any], int, Any]] = []
    try:
        for table in _dispatch_tables():
            for code in (dis.opmap[name] for name in (*_STORES, _STORE_ATTRIBUTE) if name in dis.opmap):
                if table[code] is not None:
                    replaced.append((table, code, table[code]))
                    table[code] = _watched(table[code], callback)
        yield
    finally:
        for table, code, original in reversed(replaced):
            table[code] = original


def layout(value: Any) -> Layout | None:
    """The layout of a traced tensor, None for anything else."""
    if not isinstance(value, torch.Tensor):
        return None
    sizes = tuple(map(size, value.shape))
    return Layout(str(value.dtype), sizes, _strides(value), str(value.device))


def number(value: Any) -> tuple[str, Size] | None:
    """The Python type of a symbolic number, with its expression and value; None for anything else."""
    kind = next((name for symbolic, name in _NUMBERS.items() if isinstance(value, symbolic)), None)
    return None if kind is None else (kind, size(value))


def size(value: Any) -> Size:
    """A size or stride, symbolic or not."""
    node = getattr(value, "node", None)
    if node is None:
        return Size(str(int(value)), int(value))
    # Its expression after all that torch has found out by now, without an answer that would be guarded on.
    expression = node.expr
    if getattr(expression, "is_Integer", False):
        return Size(str(int(expression)), int(expression))
    known = getattr(node, "_hint", None)
    return Size(str(expression), int(known) if isinstance(known, int) else None)


def traced_value(node: torch.fx.Node) -> Any:
    """What a node of a graph of Dynamo's makes, as a fake tensor or a container of them."""
    return node.meta.get("example_value")


def _strides(value: torch.Tensor) -> tuple[Size, ...] | None:
    """The strides where they are not those of a contiguous tensor, compared as expressions only."""
    if value.layout is not torch.strided:
        return None
    expected: Any = 1
    contiguous = True
    for extent, stride in zip(reversed(value.shape), reversed(value.stride()), strict=True):
        long, step = _expression(extent), _expression(stride)
        if long != 1:
            contiguous = contiguous and step == expected
            expected = expected * long
    return None if contiguous else tuple(map(size, value.stride()))


def _expression(value: Any) -> Any:
    node = getattr(value, "node", None)
    return int(value) if node is None else node.expr


def _dispatch_tables() -> Iterator[list[Any]]:
    base = getattr(torch._dynamo.symbolic_convert, "InstructionTranslatorBase", None)
    waiting = [base] if base is not None else []
    while waiting:
        cls = waiting.pop()
        waiting += cls.__subclasses__()
        table = vars(cls).get("dispatch_table")
        if isinstance(table, list):
            yield table


def _watched(original: Callable[..., Any], callback: Callable[[StoreEvent], None]) -> Callable[..., Any]:
    def store(self: Any, inst: Any) -> Any:
        with harmless("a stored value"):
            event = _event(self, inst)
            if event is not None:
                callback(event)
        return original(self, inst)

    return store


def _event(translator: Any, inst: Any) -> StoreEvent | None:
    if inst.opname == _STORE_ATTRIBUTE:
        value, owner = translator.stack[-2:]
        name = f"{_owner(translator, owner)}.{inst.argval}"
    else:
        value, name = translator.stack[-1], str(inst.argval)
    several = type(value).__name__ in ("TupleVariable", "ListVariable")
    nodes = [_node(item) for item in (value.items if several else [value])]
    found = tuple(node for node in nodes if node is not None)
    if not found or len(found) != len(nodes):
        return None
    place = stacks.code_place(translator.f_code)
    at = Frame(place.file, int(translator.lineno), place.function, resumed=place.resumed)
    return StoreEvent(name, at, found, several, stacks.compile_id() or "?")


def _owner(translator: Any, owner: Any) -> str:
    """What the object is called whose attribute is set: as a local variable, else where it comes from.

    `symbolic_locals` and `source` are the same in 2.11 to 2.15; the name of a source became a property in 2.10.
    """
    for name, variable in translator.symbolic_locals.items():
        if variable is owner:
            return str(name)
    name = getattr(getattr(owner, "source", None), "name", "")
    return str(name() if callable(name) else name)


def _node(variable: Any) -> torch.fx.Node | None:
    """The graph node of a traced tensor or number; a lazy variable that nobody looked at yet stays so."""
    traced = type(variable).__name__ in ("TensorVariable", "SymNodeVariable")
    proxy = getattr(variable, "proxy", None) if traced else None
    return getattr(proxy, "node", None)
