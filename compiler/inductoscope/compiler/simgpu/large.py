"""Large tensors that a program makes on the CPU only to have them moved: they are made on the device from the start.

A device tensor has no data until somebody looks, so inputs of many gigabytes cost neither memory nor time.  Knows the
operators that make tensors; whether the program works like this is for the caller to see.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._pytree import tree_leaves, tree_map

LARGE_BYTES = 1 << 26
"""From this size on a tensor is worth it: 64 MiB are filled with random numbers in a tenth of a second."""

_CPU = torch.device("cpu")


@dataclass
class LargeTensors:
    """What becomes of calls while a program makes its inputs; `taken` counts the tensors that were made elsewhere."""

    device: torch.device
    owns: Callable[[object], bool]
    upload: Callable[[torch.Tensor], torch.Tensor]
    taken: int = 0

    def redirected(
        self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of a call, for the device where they make or use a large tensor."""
        tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
        if not tensors:
            if not _makes_large(func, args, kwargs):
                return args, kwargs
            self.taken += 1
            return args, {**kwargs, "device": self.device}
        if not any(map(self.owns, tensors)):
            return args, kwargs
        if kwargs.get("device") == _CPU:
            kwargs = {**kwargs, "device": self.device}
        if func._schema.is_mutable:  # a copy of what is written to would take the change
            return args, kwargs
        moved: tuple[tuple[Any, ...], dict[str, Any]] = tree_map(self._moved, (args, kwargs))
        return moved

    def _moved(self, leaf: Any) -> Any:
        on_cpu = isinstance(leaf, torch.Tensor) and not self.owns(leaf) and leaf.dim() > 0
        return self.upload(leaf) if on_cpu else leaf


def _makes_large(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether a call without tensors makes a large one on the CPU, without a generator of the program's own."""
    names = [argument.name for argument in func._schema.arguments]
    if "size" not in names or "device" not in names or kwargs.get("generator") is not None:
        return False
    if (kwargs.get("device") or torch.get_default_device()) != _CPU:
        return False
    size = dict(zip(names, args, strict=False)).get("size", kwargs.get("size"))
    dtype = kwargs.get("dtype") or torch.get_default_dtype()
    return size is not None and math.prod(size) * dtype.itemsize >= LARGE_BYTES
