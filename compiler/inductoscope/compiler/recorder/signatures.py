"""What the arguments of a call look like: shapes, strides, dtypes, devices, never what is in a tensor.

Numbers, short texts, booleans and None are told as they are: Dynamo holds compiled code to them.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import CodeType
from typing import Any

MOST_ITEMS = 64
"""Items of a list, tuple or dictionary that are described."""

LONGEST_TEXT = 64
_DEEPEST = 4
_VARARGS, _VARKEYWORDS = 0x04, 0x08  # code flags, `inspect.CO_VARARGS` and `CO_VARKEYWORDS`


def describe(code: CodeType, variables: Mapping[str, Any]) -> dict[str, Any]:
    """The name and the arguments of a function that begins."""
    return {"function": owner(code, variables), "arguments": signature(code, variables)}


def signature(code: CodeType, variables: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The arguments of a function at its start, in order; that of a method without `self`.

    Each has `name`, `how` (positional, keyword, rest, named) and what `described` says.
    """
    import torch

    found = []
    for at, (name, how) in enumerate(_parameters(code)):
        if name not in variables:
            continue
        value = variables[name]
        if at == 0 and isinstance(value, torch.nn.Module):
            continue
        found.append({"name": name, "how": how, **described(value)})
    return found


def owner(code: CodeType, variables: Mapping[str, Any]) -> str:
    """The function's name with its class: `Block.forward`."""
    names = _parameters(code)
    first = variables.get(names[0][0]) if names else None
    import torch

    if isinstance(first, torch.nn.Module):
        return f"{type(first).__name__}.{code.co_name}"
    return str(getattr(code, "co_qualname", code.co_name))


def described(value: Any, depth: int = 0) -> dict[str, Any]:
    """One value."""
    import torch

    if isinstance(value, torch.Tensor):
        return {"tensor": _tensor(value)}
    if value is None or isinstance(value, bool | int | float):
        return {"value": value}
    if isinstance(value, str) and len(value) <= LONGEST_TEXT:
        return {"value": value}
    if depth < _DEEPEST and type(value) in (list, tuple) and len(value) <= MOST_ITEMS:
        return {type(value).__name__: [described(item, depth + 1) for item in value]}
    if (
        depth < _DEEPEST
        and type(value) is dict
        and len(value) <= MOST_ITEMS
        and all(isinstance(key, str) for key in value)
    ):
        return {"dict": {key: described(item, depth + 1) for key, item in value.items()}}
    return {"other": type(value).__name__}


def _parameters(code: CodeType) -> list[tuple[str, str]]:
    names = code.co_varnames
    positional, keyword = code.co_argcount, code.co_kwonlyargcount
    found = [(name, "positional") for name in names[:positional]]
    found += [(name, "keyword") for name in names[positional : positional + keyword]]
    rest = list(names[positional + keyword :])
    if code.co_flags & _VARARGS:
        found.append((rest.pop(0), "rest"))
    if code.co_flags & _VARKEYWORDS:
        found.append((rest.pop(0), "named"))
    return found


def _tensor(value: Any) -> dict[str, Any]:
    """Sizes and strides as numbers; a subclass or a sparse tensor has no strides of its own."""
    try:
        stride: list[int] | None = [int(one) for one in value.stride()]
    except (RuntimeError, TypeError):
        stride = None
    return {
        "dtype": str(value.dtype).removeprefix("torch."),
        "shape": [int(size) for size in value.shape],
        "stride": stride,
        "device": str(value.device),
        "requires_grad": bool(value.requires_grad),
    }
