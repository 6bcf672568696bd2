"""A program on another device, called by one that knows the CPU only.

Its arguments move to the device at each call, and come back afterwards together with what it returns, so that the
caller finds what it would find if all had stayed on the CPU: results that it can compute with, arguments changed in
place, gradients.  Knows nothing of targets or conventions.
"""

from __future__ import annotations

import dataclasses
import enum
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch.utils.weak import WeakTensorKeyDictionary

from inductoscope.compiler.compat.compiled import Arguments


class Device(Protocol):
    """Where things move."""

    def move(self, leaf: Any) -> Any:
        """A tensor on the device, not connected to the one given; a module, which moves in place."""

    def bring_back(self, tensor: torch.Tensor) -> torch.Tensor | None:
        """A tensor of the device on the CPU, connected to it; None where its values cannot be told."""


class Gradients(enum.Enum):
    """Where the gradients of arguments are wanted: on the device's own tensors, or on those of the caller."""

    THERE = enum.auto()
    HERE = enum.auto()


@dataclass
class _Copy:
    """What a CPU tensor became, and the state of both when they were last the same."""

    there: torch.Tensor
    version: int
    there_version: int


class Traveller:
    """Moves arguments there and results back.

    What is one tensor stays one tensor, in a call and from call to call, as long as its values stay what they are.
    Lists, dictionaries and dataclasses stay the same objects, since a program may change them; their tensors are
    exchanged in place.
    """

    def __init__(self, device: Device, keep_on_cpu: frozenset[int], gradients: Gradients) -> None:
        self._device = device
        self._gradients = gradients
        self._keep_on_cpu = keep_on_cpu
        self._copies = WeakTensorKeyDictionary()
        self._arguments: list[Any] = []
        self._in_call: list[tuple[torch.Tensor, _Copy]] = []

    def there(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Arguments:
        """The arguments of a call on the device, except for those of the indices to keep."""
        self._in_call = []
        given = (*args, *kwargs.values())
        values = [
            value if index in self._keep_on_cpu else exchanged(value, self._there, self._device.move)
            for index, value in enumerate(given)
        ]
        self._arguments = [value for index, value in enumerate(values) if index not in self._keep_on_cpu]
        return tuple(values[: len(args)]), dict(zip(kwargs, values[len(args) :], strict=True))

    def back(self, result: Any) -> Any:
        """The result of the call on the CPU, after its arguments."""
        for here, copy in self._in_call:
            self._write_back(here, copy)
        for argument in self._arguments:
            exchanged(argument, self._here, _as_it_is)
        return exchanged(result, self._here, _as_it_is)

    def _there(self, tensor: torch.Tensor) -> torch.Tensor:
        if tensor.device.type != "cpu":
            return tensor
        copy = self._copies.get(tensor)
        if copy is None or copy.version != _version(tensor) or copy.there.requires_grad != tensor.requires_grad:
            copy = self._remember(tensor, self._moved(tensor))
        self._in_call.append((tensor, copy))
        return copy.there

    def _moved(self, tensor: torch.Tensor) -> torch.Tensor:
        """A tensor like the caller's own: leaf or not, parameter or not."""
        moved: torch.Tensor
        if not tensor.is_leaf and torch.is_grad_enabled():
            moved = _Connected.apply(tensor, self._device)
        elif isinstance(tensor, torch.nn.Parameter):
            moved = torch.nn.Parameter(self._device.move(tensor.detach()), tensor.requires_grad)
        else:
            moved = self._device.move(tensor.detach()).requires_grad_(tensor.requires_grad)
        vars(moved).update(vars(tensor))  # marks such as those of mark_dynamic stand there
        if self._gradients is Gradients.HERE and moved.is_leaf and moved.requires_grad:
            moved.register_post_accumulate_grad_hook(_handing_over(tensor, self._device))
        return moved

    def _here(self, tensor: torch.Tensor) -> torch.Tensor:
        if tensor.device.type == "cpu":
            return tensor
        known = next((here for here, copy in self._in_call if copy.there is tensor), None)
        if known is not None:
            return known
        here = self._device.bring_back(tensor)
        if here is None:
            return tensor
        self._in_call.append((here, self._remember(here, tensor)))
        return here

    def _write_back(self, here: torch.Tensor, copy: _Copy) -> None:
        """Let the caller see what the call wrote into an argument."""
        if _version(copy.there) == copy.there_version:
            return
        written = self._device.bring_back(copy.there)
        if written is not None:
            with torch.set_grad_enabled(torch.is_grad_enabled() and not (here.is_leaf and here.requires_grad)):
                here.copy_(written)
        copy.version, copy.there_version = _version(here), _version(copy.there)

    def _remember(self, here: torch.Tensor, there: torch.Tensor) -> _Copy:
        copy = self._copies[here] = _Copy(there, _version(here), _version(there))
        return copy


def _handing_over(tensor: torch.Tensor, device: Device) -> Callable[[torch.Tensor], None]:
    """A hook for the device's copy of a leaf: its gradients are added to those of the leaf itself."""
    leaf = weakref.ref(tensor)

    def hand_over(there: torch.Tensor) -> None:
        here, gradient = leaf(), there.grad
        arrived = device.bring_back(gradient) if gradient is not None else None
        if here is not None and arrived is not None:
            here.grad = arrived if here.grad is None else here.grad + arrived
            there.grad = None

    return hand_over


class _Connected(torch.autograd.Function):
    """A tensor on the device whose gradient comes back to the CPU."""

    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor, device: Device) -> torch.Tensor:
        ctx.device = device
        moved: torch.Tensor = device.move(tensor.detach())
        return moved

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, None]:
        return ctx.device.bring_back(gradient), None


def exchanged(
    obj: Any, tensor: Callable[[torch.Tensor], torch.Tensor], module: Callable[[torch.nn.Module], torch.nn.Module]
) -> Any:
    """`obj` with every tensor and module in it exchanged; what holds them changes in place, except for tuples."""

    def change(value: Any) -> Any:
        return exchanged(value, tensor, module)

    if isinstance(obj, torch.Tensor):
        return tensor(obj)
    if isinstance(obj, torch.nn.Module):
        return module(obj)
    if type(obj) is dict:
        obj.update({key: change(value) for key, value in obj.items()})
    elif isinstance(obj, tuple) and hasattr(obj, "_fields"):
        return type(obj)(*map(change, obj))
    elif type(obj) is tuple:
        return tuple(map(change, obj))
    elif type(obj) is list:
        obj[:] = map(change, obj)
    elif dataclasses.is_dataclass(obj) and not isinstance(obj, type):
        for name in (field.name for field in dataclasses.fields(obj) if hasattr(obj, field.name)):
            object.__setattr__(obj, name, change(getattr(obj, name)))  # frozen ones too
    return obj


def _version(tensor: torch.Tensor) -> int:
    return 0 if tensor.is_inference() else tensor._version


def _as_it_is(module: torch.nn.Module) -> torch.nn.Module:
    return module
