"""Tensors that do not move with their module: those that it holds as plain attributes, and those of the file itself.

Knows nothing of devices but that a tensor on the CPU was left there.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Iterable, Iterator

import torch

_NAMED = 3
"""So many tensors are named; they tend to be one kind, repeated in each layer."""


def note(modules: Iterable[torch.nn.Module]) -> str | None:
    """A sentence about the tensors that stayed on the CPU when `modules` moved; None where there are none.

    One without dimensions may be used together with tensors on any device, so it is left out.
    """
    names = [f"`{name}`" for module in modules for name in _left(module)]
    if not names:
        return None
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    one = len(names) == 1
    return (
        f"{', '.join(names[:_NAMED])}{more} {'is a tensor' if one else 'are tensors'} but no "
        f"{'parameter or buffer' if one else 'parameters or buffers'} of the model, so moving it to the GPU leaves "
        f"{'it' if one else 'them'} on the CPU. register_buffer() makes {'it' if one else 'them'} move along."
    )


def note_of_globals(functions: Iterable[types.FunctionType], large_bytes: int) -> str | None:
    """A sentence about tensors of the file that are on the device although nothing moves them; None without any.

    Those of `large_bytes` or more are made there at once (see `Placement.imported`); only `functions`, which use them,
    tell which there are.
    """
    names = sorted({f"`{name}`" for function in functions for name in _on_device(function, large_bytes)})
    if not names:
        return None
    one = len(names) == 1
    return (
        f"{', '.join(names[:_NAMED])} {'is' if one else 'are'} on the GPU from the start here, without data: "
        f"{'it is' if one else 'they are'} large. Where the file makes {'it' if one else 'them'} on the CPU, a real "
        f"program has to move {'it' if one else 'them'} to the GPU itself."
    )


def _on_device(function: types.FunctionType, large_bytes: int) -> Iterator[str]:
    closed = inspect.getclosurevars(function)
    for name, value in (*closed.globals.items(), *closed.nonlocals.items()):
        if isinstance(value, torch.Tensor) and value.device.type == "cuda" and value.nbytes >= large_bytes:
            yield name


def _left(module: torch.nn.Module) -> Iterator[str]:
    for owner, part in module.named_modules():
        for name, value in vars(part).items():
            if isinstance(value, torch.Tensor) and value.device.type == "cpu" and value.dim() > 0:
                yield f"{owner}.{name}" if owner else name
