"""How a tensor's dtype and sizes are written wherever a report speaks of a value.  Knows no graphs."""

from __future__ import annotations

from collections.abc import Sequence

from inductoscope.compiler.compat import dynamo_values
from inductoscope.compiler.compat.dynamo_values import Layout, Size
from inductoscope.protocol.input_values import tensor_text

MOST_LISTED = 8
"""Tensors of one list or tuple that are written out."""


def text_of(layout: Layout) -> str:
    """`f32[s77=4, 128]`."""
    return tensor_text(layout.dtype, [size_text(size) for size in layout.sizes])


def size_text(size: Size) -> str:
    """A size or stride; a symbolic one with the value it had."""
    if not size.is_symbolic or size.value is None:
        return size.expression
    return f"{size.expression}={size.value}"


def layouts_of(value: object) -> tuple[Layout, ...]:
    """The layouts of a tensor or of a list or tuple of tensors; nothing where any of the values is none."""
    values = value if isinstance(value, list | tuple) else [value]
    found = tuple(layout for one in values if (layout := dynamo_values.layout(one)) is not None)
    return found if len(found) == len(values) else ()


def several_text(layouts: Sequence[Layout]) -> str:
    """`(f32[4, 128], f32[4])`: the tensors of a list or tuple, the first few written out."""
    texts = [text_of(layout) for layout in layouts[:MOST_LISTED]]
    more = [f"… {len(layouts) - MOST_LISTED} more"] if len(layouts) > MOST_LISTED else []
    return f"({', '.join([*texts, *more])})"


def devices_of(layouts: Sequence[Layout]) -> str:
    """Where the tensors are, each place once."""
    return ", ".join(dict.fromkeys(layout.device for layout in layouts))
