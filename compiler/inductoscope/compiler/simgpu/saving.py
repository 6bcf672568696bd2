"""Device tensors that are pickled, saved, loaded or shallowly copied: with their values, as on a card.

Knows torch's file format only as far as its own functions rebuild tensors: a device tensor is saved as its CPU values
and the device's name, which any torch can load, and loading "to the device" uploads each storage once.
"""

from __future__ import annotations

import copy
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor

from inductoscope.compiler.simgpu.mode import SimulatedDeviceMode
from inductoscope.compiler.simgpu.patching import Patches

_BEFORE_TORCHS_OWN = 5  # torch's deserialisers have priorities from 10 on; the first that answers is taken
_MARK = "_goes_to_the_simulated_device"  # of a loaded CPU storage: None, or its whole contents on the device


def install(mode: SimulatedDeviceMode, own_attributes: Callable[[Any], dict[str, Any]], patches: Patches) -> None:
    """Patch pickling and copying; `own_attributes` are those of a tensor's that the program has put there."""
    saving = _Saving(mode, own_attributes)
    why = "device tensors are saved with their values"
    patches.wrap(FakeTensor, "__reduce_ex__", saving.reduce, why=why)
    patches.define(FakeTensor, "__copy__", saving.shallow_copy, why="shallow copies share their storage")
    patches.wrap(torch._utils, "_rebuild_tensor", saving.rebuild, why="tensors loaded to the device are on it")
    patches.wrap(torch.Tensor, "share_memory_", saving.share_memory, why="memory of a card is shared already")
    torch.serialization.register_package(_BEFORE_TORCHS_OWN, lambda _: None, _marked)


def _marked(storage: Any, location: str) -> Any:
    """A CPU storage that was loaded for `location`, if that is the device; else None, and another takes it."""
    if location.partition(":")[0] != "cuda":
        return None
    torch.serialization.validate_cuda_device(location)
    setattr(storage, _MARK, None)
    return storage


class _Saving:
    def __init__(self, mode: SimulatedDeviceMode, own_attributes: Callable[[Any], dict[str, Any]]) -> None:
        self._mode, self._own_attributes = mode, own_attributes

    def reduce(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def reduce_ex(tensor: FakeTensor, protocol: Any) -> Any:
            return self._reduced(tensor) if self._mode.owns(tensor) else original(tensor, protocol)

        return reduce_ex

    def _reduced(self, tensor: FakeTensor) -> tuple[Any, ...]:
        state = self._own_attributes(tensor)
        if isinstance(tensor, torch.nn.Parameter):
            parts = (tensor.data, tensor.requires_grad, OrderedDict[int, Any]())
            if state:
                return torch._utils._rebuild_parameter_with_state, (*parts, state)
            return torch._utils._rebuild_parameter, parts
        args = (self._mode.values_to_save(tensor), tensor.dtype, str(tensor.device), tensor.requires_grad)
        rebuild = torch._utils._rebuild_device_tensor_from_cpu_tensor
        return (torch._tensor._rebuild_from_type_v2, (rebuild, torch.Tensor, args, state)) if state else (rebuild, args)

    def shallow_copy(self, tensor: FakeTensor) -> Any:
        if not self._mode.owns(tensor):
            return copy._reconstruct(tensor, None, *tensor.__reduce_ex__(4))  # type: ignore[attr-defined]
        if isinstance(tensor, torch.nn.Parameter):
            return torch.nn.Parameter(tensor.data, tensor.requires_grad)
        twin = tensor.detach().requires_grad_(tensor.requires_grad)
        twin.__dict__.update(self._own_attributes(tensor))
        return twin

    def rebuild(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def rebuild(storage: Any, offset: Any, size: Any, stride: Any) -> Any:
            untyped = storage._untyped_storage
            if not hasattr(untyped, _MARK):
                return original(storage, offset, size, stride)
            whole = getattr(untyped, _MARK)
            if whole is None:
                elements = untyped.nbytes() // max(1, storage.dtype.itemsize)
                whole = original(storage, 0, (elements,), (1,)).cuda()
                setattr(untyped, _MARK, whole)
            return whole.view(storage.dtype).as_strided(size, stride, offset).detach()

        return rebuild

    def share_memory(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def share_memory(tensor: torch.Tensor) -> Any:
            return tensor if self._mode.owns(tensor) else original(tensor)

        return share_memory
