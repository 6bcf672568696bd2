"""Tensors that do not move with their module: those that it holds as plain attributes, and those of the file itself.

Knows nothing of devices but that a tensor on the CPU was left there.
"""

from __future__ import annotations

import contextlib
import dis
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


def note_of_cpu_globals(functions: Iterable[types.FunctionType]) -> str | None:
    """A sentence about tensors on the CPU that `functions`, or those of their file that these call, find there.

    None where there are none.  Modules of the file move, so they are left out.
    """
    used = ((name, value) for function in _with_called(functions) for name, value in _closed(function))
    names = sorted({f"`{name}`" for name, value in used if any(map(_is_on_cpu, _held(value)))})
    if not names:
        return None
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    stays, it = ("stays", "it") if len(names) == 1 else ("stay", "them")
    return (
        f"{', '.join(names[:_NAMED])}{more} {stays} on the CPU, where the file makes {it}: only inputs and modules are "
        f"moved to the GPU here. A real program has to move {it} there too; --device cpu runs it as it is."
    )


def _with_called(functions: Iterable[types.FunctionType]) -> list[types.FunctionType]:
    """The functions, and those that they reach by name in their own file."""
    found = list(dict.fromkeys(functions))
    for function in found:
        called = (value for _, value in _closed(function) if isinstance(value, types.FunctionType))
        found += [one for one in called if one.__globals__ is function.__globals__ and one not in found]
    return found


def _closed(function: types.FunctionType) -> Iterator[tuple[str, object]]:
    """Names of the file and of enclosing functions that a function and those inside of it use, with their values."""
    names = {one.argval for one in _instructions(function.__code__) if one.opname == "LOAD_GLOBAL"}
    yield from ((name, function.__globals__[name]) for name in sorted(names & function.__globals__.keys()))
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with contextlib.suppress(ValueError):  # nothing is in it yet
            yield name, cell.cell_contents


def _instructions(code: types.CodeType) -> Iterator[dis.Instruction]:
    yield from dis.get_instructions(code)
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            yield from _instructions(inner)


def _held(value: object) -> Iterable[object]:
    """A value, or what a plain container of values holds."""
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list | tuple) else (value,)


def _is_on_cpu(value: object) -> bool:
    """Whether it is a tensor there; one without dimensions may be used together with tensors on any device."""
    return isinstance(value, torch.Tensor) and value.device.type == "cpu" and value.dim() > 0


def _on_device(function: types.FunctionType, large_bytes: int) -> Iterator[str]:
    for name, value in _closed(function):
        if isinstance(value, torch.Tensor) and value.device.type == "cuda" and value.nbytes >= large_bytes:
            yield name


def _left(module: torch.nn.Module) -> Iterator[str]:
    for owner, part in module.named_modules():
        for name, value in vars(part).items():
            if _is_on_cpu(value):
                yield f"{owner}.{name}" if owner else name
