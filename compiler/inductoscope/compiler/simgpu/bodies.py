"""Tensor objects that change what they hold: moved modules, `.data =`, deep copies; and how device tensors print.

A program keeps references to its parameters (tied weights, optimisers, hooks), so a parameter that moves to the device
must stay the same object.  torch does that by `param.data = moved`, which C++ refuses between a CPU tensor and a fake
one: here the object gets the body of the other.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.nn import parameter as nn_parameter
from torch.utils.weak import WeakIdKeyDictionary

from inductoscope.compiler.simgpu import saving
from inductoscope.compiler.simgpu.mode import SimulatedDeviceMode
from inductoscope.compiler.simgpu.patching import Patches


def install(mode: SimulatedDeviceMode, patches: Patches) -> None:
    """Patch `nn.Module._apply`, `Tensor.data` and the Python methods of fake tensors."""
    bodies = _Bodies(mode)
    patches.wrap(torch.nn.Module, "_apply", bodies.module_apply, why="keeps the identity of moved parameters")
    patches.wrap(torch.Tensor, "data", bodies.data_property, why="`p.data = p.data.cuda()` keeps p")
    for lazy in (nn_parameter.UninitializedParameter, nn_parameter.UninitializedBuffer):
        why = "lazy parameters of a moved module appear on the device"
        patches.wrap(lazy, "materialize", bodies.materialize, why=why)
    for name, make in (
        ("__deepcopy__", bodies.deepcopy),
        ("__repr__", bodies.representation),
        ("__format__", bodies.format),
        ("numpy", bodies.numpy),
    ):
        why = "device tensors are copied and printed with their values, as on a card"
        patches.wrap(FakeTensor, name, make, why=why)
    saving.install(mode, bodies.own_attributes, patches)


class _Bodies:
    def __init__(self, mode: SimulatedDeviceMode) -> None:
        self._mode = mode
        with mode.fake:
            fresh = torch.empty(0)
        self._fake_names = frozenset(fresh.__dict__)  # anything else in a tensor's __dict__ was put by somebody else
        self._replaced = WeakIdKeyDictionary()  # parameters that could not keep their identity -> what took their place
        self._to_be_moved = WeakIdKeyDictionary()  # lazy parameters -> whether they will be on the device

    def _crosses(self, before: Any, after: Any) -> bool:
        """Whether the two live on different sides: one on the device, the other on the CPU."""
        return self._mode.owns(before) != self._mode.owns(after)

    def own_attributes(self, tensor: Any) -> dict[str, Any]:
        """What the program has put into a tensor's `__dict__`."""
        skipped = self._fake_names | {"_is_param"}
        return {name: value for name, value in tensor.__dict__.items() if name not in skipped}

    # -- one tensor

    def _become(self, tensor: torch.Tensor, new: torch.Tensor) -> torch.Tensor:
        """Give `tensor` the body of `new`, which it does not share yet; the result is `tensor` if that can be."""
        body = self._body(tensor, new)
        try:
            torch._C._swap_tensor_impl(tensor, body)
        except RuntimeError:  # something in C++ holds the old body (an autograd graph that is still alive)
            return body
        tensor.__class__, body.__class__ = body.__class__, tensor.__class__
        tensor.__dict__, body.__dict__ = body.__dict__, tensor.__dict__
        return tensor

    def _body(self, tensor: torch.Tensor, new: torch.Tensor) -> Any:
        body: Any
        is_parameter = isinstance(tensor, torch.nn.Parameter)
        if isinstance(new, FakeTensor):
            with torch.no_grad():
                body = new.detach()
            if is_parameter:
                body._is_param = True
        else:
            body = torch.nn.Parameter(new, False) if is_parameter else new.detach()
        body.__dict__.update(self.own_attributes(tensor))
        for name in ("_backward_hooks", "_post_accumulate_grad_hooks"):
            if getattr(tensor, name, None) is not None:
                setattr(body, name, getattr(tensor, name))
        return body.requires_grad_(tensor.requires_grad)

    def data_property(self, original: Any) -> property:
        def set_data(tensor: torch.Tensor, new: torch.Tensor) -> None:
            if not self._crosses(tensor, new):
                original.__set__(tensor, new)
            elif self._become(tensor, new) is not tensor:
                raise RuntimeError(
                    "`.data =` cannot move this tensor between CPU and simulated GPU: an autograd graph still uses it."
                )

        return property(original.__get__, set_data, original.__delete__, original.__doc__)

    # -- modules

    def module_apply(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def apply(module: Any, fn: Callable[[Any], Any], recurse: bool = True) -> Any:
            if recurse:
                for child in module.children():
                    child._apply(fn)
            own = [t for t in (*module._parameters.values(), *module._buffers.values()) if t is not None]
            lazy = [t for t in own if nn_parameter.is_lazy(t) and self._moves_later(t, fn)]
            own = [t for t in own if not any(t is other for other in lazy)]
            with torch.no_grad():
                applied = {id(t): self._replaced.get(t) or fn(t) for t in own}
            if not lazy and not any(self._mode.owns(t) or self._mode.owns(applied[id(t)]) for t in own):
                return original(module, lambda t: applied[id(t)] if id(t) in applied else fn(t), recurse=False)
            for name, parameter in module._parameters.items():
                if id(parameter) in applied:
                    module._parameters[name] = self._moved(parameter, applied[id(parameter)], fn)
            for name, buffer in module._buffers.items():
                if id(buffer) in applied:
                    module._buffers[name] = applied[id(buffer)]
            return module

        return apply

    def _moved(self, parameter: Any, new: Any, fn: Callable[[Any], Any]) -> Any:
        if new is parameter:
            return parameter
        gradient = parameter.grad
        parameter.grad = None
        result = parameter
        if self._crosses(parameter, new):
            result = self._become(parameter, new)
            if result is not parameter:
                self._replaced[parameter] = result
        elif new is not self._replaced.get(parameter):
            parameter.data = new
        if gradient is not None:
            with torch.no_grad():
                result.grad = fn(gradient)
        return result

    def _moves_later(self, tensor: Any, fn: Callable[[Any], Any]) -> bool:
        """Whether `fn` sends a parameter that has no shape yet to the device: it goes there when it gets one."""
        like = torch.empty(0, dtype=tensor.data.dtype, device="cuda" if self._to_be_moved.get(tensor) else "cpu")
        moved = fn(like)
        self._to_be_moved[tensor] = self._mode.owns(moved)
        if self._to_be_moved[tensor]:
            tensor.data = tensor.data.to(moved.dtype)
        return bool(self._to_be_moved[tensor])

    def materialize(self, original: Callable[..., None]) -> Callable[..., None]:
        def materialize(tensor: Any, shape: Any, device: Any = None, dtype: Any = None) -> None:
            moves = device is None and self._to_be_moved.get(tensor, False)
            original(tensor, shape, device, dtype)
            if moves:
                tensor.data = tensor.data.cuda()

        return materialize

    # -- copies

    def deepcopy(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def deepcopy(tensor: FakeTensor, memo: dict[Any, Any]) -> Any:
            if not self._mode.owns(tensor) or not tensor.is_leaf:  # torch says what it thinks of a non-leaf
                return original(tensor, memo)
            if id(tensor) not in memo:
                memo[id(tensor)] = self._twin(tensor, memo)
            return memo[id(tensor)]

        return deepcopy

    def _twin(self, tensor: FakeTensor, memo: dict[Any, Any]) -> Any:
        if isinstance(tensor, torch.nn.Parameter):  # as Parameter.__deepcopy__: no gradient, no attributes, no sharing
            return torch.nn.Parameter(tensor.data.clone(memory_format=torch.preserve_format), tensor.requires_grad)
        with torch.no_grad():
            twin = self._copied_view(tensor, memo)
            twin.requires_grad_(tensor.requires_grad)
            if tensor.grad is not None:
                twin.grad = copy.deepcopy(tensor.grad, memo)
        memo[id(tensor)] = twin  # an attribute may lead back here
        twin.__dict__.update(copy.deepcopy(self.own_attributes(tensor), memo))
        return twin

    def _copied_view(self, tensor: FakeTensor, memo: dict[Any, Any]) -> Any:
        """A copy that shares its storage with the copies of those that `tensor` shares its storage with."""
        storage = tensor.untyped_storage()
        key = ("storage", storage._cdata)
        if key not in memo:
            elements = storage.nbytes() // max(1, tensor.element_size())
            whole = tensor.detach().as_strided((elements,), (1,), 0).clone()
            memo[key] = whole
        whole = memo[key]
        if whole.dtype is not tensor.dtype:
            whole = whole.view(tensor.dtype)
        return whole.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset()).detach()

    # -- text

    def representation(self, original: Callable[..., str]) -> Callable[..., str]:
        def representation(tensor: FakeTensor, *args: Any, **kwargs: Any) -> str:
            return self._printed(tensor) if self._is_looked_at(tensor) else original(tensor, *args, **kwargs)

        return representation

    def _is_looked_at(self, tensor: Any) -> bool:
        """Whether the program prints a device tensor; the compiler prints tensors too, for its logs and messages."""
        return self._mode.owns(tensor) and torch._guards.CompileContext.current_compile_id() is None

    def _printed(self, tensor: FakeTensor) -> str:
        text = repr(tensor.detach().cpu())
        extra = f", device='{tensor.device}'"
        if tensor.grad_fn is not None:
            extra += f", grad_fn=<{type(tensor.grad_fn).__name__}>"
        elif tensor.requires_grad:
            extra += ", requires_grad=True"
        if isinstance(tensor, torch.nn.Parameter):
            return f"Parameter containing:\n{text[:-1]}{extra})"
        return f"{text[:-1]}{extra})"

    def numpy(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def numpy(tensor: FakeTensor, *args: Any, **kwargs: Any) -> Any:
            if self._mode.owns(tensor):
                raise TypeError(
                    f"can't convert {tensor.device} device type tensor to numpy. "
                    "Use Tensor.cpu() to copy the tensor to host memory first."
                )
            return original(tensor, *args, **kwargs)

        return numpy

    def format(self, original: Callable[..., str]) -> Callable[..., str]:
        def format_value(tensor: FakeTensor, spec: str) -> str:
            if self._is_looked_at(tensor) and tensor.dim() == 0:
                return str(tensor.detach().item().__format__(spec))
            return original(tensor, spec)

        return format_value
