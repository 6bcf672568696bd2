"""The tensors among the arguments of a call: what they are called, and the same call with some of another size.

A tensor of another size is cut or repeated from the one that was given, so that indices stay valid ones.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from inductoscope.compiler.compat.dynamo_guards import copy_marks
from inductoscope.compiler.inputs import CallInputs

_DEEPEST = 4


@dataclass(frozen=True)
class Leaf:
    """A tensor of the arguments: `name` is what the user calls it, `sources` what Dynamo may call it."""

    name: str
    sources: frozenset[str]
    tensor: torch.Tensor

    @property
    def sizes(self) -> tuple[int, ...]:
        """Its sizes."""
        return tuple(self.tensor.shape)


def leaves(call: CallInputs, signature: inspect.Signature | None) -> tuple[Leaf, ...]:
    """Every plain strided tensor of the call, once."""
    found: dict[int, Leaf] = {}
    for name, generic, value in _named(call, signature):
        for path, tensor in _tensors(value, _DEEPEST):
            if _can_be_resized(tensor):
                found.setdefault(id(tensor), Leaf(name + path, frozenset({name + path, generic + path}), tensor))
    return tuple(found.values())


def with_sizes(call: CallInputs, sizes: Mapping[int, Mapping[int, int]]) -> CallInputs:
    """The call with copies of its tensors; `sizes` maps the `id` of a tensor and a dimension of it to a new size."""
    copies: dict[int, torch.Tensor] = {}

    def change(tensor: torch.Tensor) -> torch.Tensor:
        if id(tensor) not in copies:
            copies[id(tensor)] = _resized(tensor, sizes.get(id(tensor), {})) if _can_be_resized(tensor) else tensor
        return copies[id(tensor)]

    args = tuple(_changed(value, change, _DEEPEST) for value in call.args)
    return CallInputs(args, {name: _changed(value, change, _DEEPEST) for name, value in call.kwargs.items()})


def _named(call: CallInputs, signature: inspect.Signature | None) -> Iterator[tuple[str, str, Any]]:
    """Each argument with its parameter's name, and with the one that a wrapper's `*args, **kwargs` give it."""
    parameters = list(signature.parameters.values()) if signature is not None else []
    for at, value in enumerate(call.args):
        named = at < len(parameters) and parameters[at].kind is not inspect.Parameter.VAR_POSITIONAL
        yield (parameters[at].name if named else f"args[{at}]"), f"args[{at}]", value
    for name, value in call.kwargs.items():
        yield name, f"kwargs['{name}']", value


def _tensors(value: Any, depth: int) -> Iterator[tuple[str, torch.Tensor]]:
    if isinstance(value, torch.Tensor):
        yield "", value
    elif depth and type(value) is dict:
        for key, item in value.items():
            yield from ((f"[{key!r}]{path}", tensor) for path, tensor in _tensors(item, depth - 1))
    elif depth and type(value) in (list, tuple):
        for at, item in enumerate(value):
            yield from ((f"[{at}]{path}", tensor) for path, tensor in _tensors(item, depth - 1))


def _changed(value: Any, change: Callable[[torch.Tensor], torch.Tensor], depth: int) -> Any:
    if isinstance(value, torch.Tensor):
        return change(value)
    if depth and type(value) is dict:
        return {key: _changed(item, change, depth - 1) for key, item in value.items()}
    if depth and type(value) in (list, tuple):
        return type(value)(_changed(item, change, depth - 1) for item in value)
    return value


def _can_be_resized(tensor: torch.Tensor) -> bool:
    if tensor.layout is not torch.strided or tensor.is_nested or isinstance(tensor, torch.nn.Parameter):
        return False
    return tensor.numel() > 0 and not tensor.is_inference()


def _resized(tensor: torch.Tensor, sizes: Mapping[int, int]) -> torch.Tensor:
    """A copy, with other sizes in some dimensions and its dimensions in the same order in memory."""
    order = sorted(range(tensor.dim()), key=lambda dim: (-tensor.stride(dim), dim))
    with torch.no_grad():
        copy = tensor.detach()
        for dim, size in sizes.items():
            copy = copy.index_select(dim, torch.arange(size, device=copy.device) % tensor.shape[dim])
        copy = copy.permute(order).clone(memory_format=torch.contiguous_format)
        copy = copy.permute(sorted(range(tensor.dim()), key=order.__getitem__))
    copy_marks(tensor, copy)
    return copy.requires_grad_(tensor.requires_grad)
