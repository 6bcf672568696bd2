"""What an inputs comment can say, as data: argument sets of tensors and literals, and their text.

`input_spec` reads the text; the worker makes values of the data.  Knows neither torch nor the grammar.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

# Short name -> the name of the torch dtype.
_SHORT = {
    "f16": "float16",
    "bf16": "bfloat16",
    "f32": "float32",
    "f64": "float64",
    "f8e4m3": "float8_e4m3fn",
    "f8e5m2": "float8_e5m2",
    "i8": "int8",
    "i16": "int16",
    "i32": "int32",
    "i64": "int64",
    "u8": "uint8",
    "u16": "uint16",
    "u32": "uint32",
    "u64": "uint64",
    "bool": "bool",
    "c32": "complex32",
    "c64": "complex64",
    "c128": "complex128",
}
# torch's own second names for a dtype.
_ALIASES = {
    "half": "float16",
    "float": "float32",
    "double": "float64",
    "short": "int16",
    "int": "int32",
    "long": "int64",
    "chalf": "complex32",
    "cfloat": "complex64",
    "cdouble": "complex128",
    "float8_e4m3fnuz": "float8_e4m3fnuz",
    "float8_e5m2fnuz": "float8_e5m2fnuz",
}
DTYPES: dict[str, str] = {**_SHORT, **{name: name for name in _SHORT.values()}, **_ALIASES}
_SHORT_OF = {name: short for short, name in _SHORT.items()}


@dataclass(frozen=True)
class Dim:
    """One dimension; `varies` when a `*` asks for a second size."""

    size: int
    varies: bool = False


@dataclass(frozen=True)
class TensorSpec:
    """A tensor of random values; `dtype` is torch's own name (`float32`)."""

    dtype: str
    dims: tuple[Dim, ...]


@dataclass(frozen=True)
class LiteralSpec:
    """A Python string, number, boolean or None."""

    value: object


class Container(enum.Enum):
    """Which Python sequence a bracket makes."""

    LIST = "list"
    TUPLE = "tuple"


@dataclass(frozen=True)
class SequenceSpec:
    """A list or tuple of values, tensors among them."""

    container: Container
    items: tuple[ValueSpec, ...]


@dataclass(frozen=True)
class DictSpec:
    """A dictionary with literal keys."""

    entries: tuple[tuple[LiteralSpec, ValueSpec], ...]


ValueSpec: TypeAlias = "TensorSpec | LiteralSpec | SequenceSpec | DictSpec"


@dataclass(frozen=True)
class Argument:
    """One argument of a call, by position when it has no name."""

    value: ValueSpec
    name: str | None = None


@dataclass(frozen=True)
class CallSpec:
    """One set of arguments: positional ones first."""

    arguments: tuple[Argument, ...]


def expand(sets: Sequence[CallSpec]) -> tuple[CallSpec, ...]:
    """`sets` with one more set after each for every size marked with `*`, that size doubled.

    Marked dimensions of one size vary together: they are one batch, wherever it shows up.
    """
    expanded: list[CallSpec] = []
    for one in sets:
        expanded.append(one)
        sizes = dict.fromkeys(dim.size for argument in one.arguments for dim in _dims(argument.value) if dim.varies)
        expanded.extend(_varied(one, size) for size in sizes)
    return tuple(expanded)


def tensor_text(dtype: str, sizes: Sequence[object]) -> str:
    """A tensor as the language writes it: `f32[4, 128]`.  `dtype` may be torch's `torch.float32`."""
    name = dtype.removeprefix("torch.")
    return f"{_SHORT_OF.get(name, name)}[{', '.join(map(str, sizes))}]"


def render(sets: Sequence[CallSpec]) -> str:
    """The text that `parse` reads back as `sets`."""
    return "; ".join(render_call(one) for one in sets)


def render_call(one: CallSpec) -> str:
    """The text of one argument set."""
    return ", ".join(
        f"{argument.name}={render_value(argument.value)}" if argument.name else render_value(argument.value)
        for argument in one.arguments
    )


def render_value(value: ValueSpec) -> str:
    """The text of one value."""
    if isinstance(value, TensorSpec):
        return tensor_text(value.dtype, [f"{dim.size}{'*' if dim.varies else ''}" for dim in value.dims])
    if isinstance(value, LiteralSpec):
        return repr(value.value)
    if isinstance(value, DictSpec):
        return "{" + ", ".join(f"{render_value(key)}: {render_value(item)}" for key, item in value.entries) + "}"
    items = ", ".join(map(render_value, value.items))
    if value.container is Container.LIST:
        return f"[{items}]"
    return f"({items},)" if len(value.items) == 1 else f"({items})"


def _dims(value: ValueSpec) -> Iterator[Dim]:
    if isinstance(value, TensorSpec):
        yield from value.dims
    elif isinstance(value, SequenceSpec):
        for item in value.items:
            yield from _dims(item)
    elif isinstance(value, DictSpec):
        for _, item in value.entries:
            yield from _dims(item)


def _varied(one: CallSpec, size: int) -> CallSpec:
    other = 2 * size if size else 2

    def vary(value: ValueSpec) -> ValueSpec:
        if isinstance(value, TensorSpec):
            dims = (Dim(other) if dim.varies and dim.size == size else Dim(dim.size) for dim in value.dims)
            return replace(value, dims=tuple(dims))
        if isinstance(value, SequenceSpec):
            return replace(value, items=tuple(map(vary, value.items)))
        if isinstance(value, DictSpec):
            return DictSpec(tuple((key, vary(item)) for key, item in value.entries))
        return value

    return CallSpec(tuple(replace(argument, value=vary(argument.value)) for argument in one.arguments))
