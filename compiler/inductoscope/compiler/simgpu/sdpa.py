"""Which implementation of scaled dot-product attention a CUDA device picks.

The rules of torch's `sdp_utils.cpp` for dense tensors, restated: every backend has conditions, and the first backend
in the order of preference whose conditions hold is taken.  AMD devices are judged by the same rules, which is an
approximation.  Compared with a real H200 on torch 2.11 with cuDNN 9.19 (324 programs); a cuDNN of that age is assumed
everywhere: older ones take smaller heads, and 9.11 to 9.13 take no dropout.
"""

from __future__ import annotations

import enum
import os
from dataclasses import dataclass
from typing import Any

import torch

from inductoscope.protocol.devices import Device


class Backend(enum.IntEnum):
    """`torch.nn.attention.SDPBackend`, as the C++ stub returns it."""

    MATH = 0
    FLASH = 1
    EFFICIENT = 2
    CUDNN = 3


@dataclass(frozen=True)
class Call:
    """The arguments that the choice depends on; tensors are (batch, heads, length, head size)."""

    query: Any
    key: Any
    value: Any
    mask: Any
    dropout: float
    causal: bool
    grouped: bool


def choose(device: Device, call: Call) -> Backend:
    """The backend that `device` would pick for this call under the process's current settings."""
    if any(t.dim() != 4 or t.is_nested for t in (call.query, call.key, call.value)):
        return Backend.MATH
    conditions = _Conditions(device, call)
    for backend, holds in conditions.in_order():
        if holds():
            return backend
    return Backend.MATH


class _Conditions:
    """One method a backend.  Sizes may be symbolic; a condition that cannot be decided does not hold."""

    def __init__(self, device: Device, call: Call) -> None:
        from torch.fx.experimental.symbolic_shapes import guard_or_false

        self._device, self._capability, self._call = device, device.capability, call
        self._sure = guard_or_false
        self._head_sizes = [t.shape[-1] for t in (call.query, call.key, call.value)]
        self._half = call.query.dtype in (torch.float16, torch.bfloat16)
        low = {torch.float16, torch.bfloat16} if self._capability >= (8, 0) else {torch.float16}
        self._low_precision = call.query.dtype in low
        self._dense = self._is_dense()

    def in_order(self) -> list[tuple[Backend, Any]]:
        order = [(Backend.FLASH, self._flash), (Backend.EFFICIENT, self._efficient)]
        last = os.environ.get("TORCH_CUDNN_SDPA_DEPRIORITIZED", "0") not in ("0", "")
        if self._capability[0] in (9, 10) and not self._device.is_amd and not last:
            order.insert(0, (Backend.CUDNN, self._cudnn))
        return order

    def _is_dense(self) -> bool:
        q, k, v = self._call.query, self._call.key, self._call.value
        sure, heads = self._sure, [t.shape[1] for t in (q, k, v)]
        if self._call.grouped:
            same_heads = sure(heads[1] == heads[2]) and sure(heads[0] % heads[1] == 0)
        else:
            same_heads = sure(heads[0] == heads[1]) and sure(heads[0] == heads[2])
        same_batch = sure(q.shape[0] == k.shape[0]) and sure(q.shape[0] == v.shape[0])
        not_empty = not (sure(q.shape[2] == 0) or sure(k.shape[2] == 0))
        return bool(q.dtype == k.dtype == v.dtype and not_empty and same_batch and same_heads)

    def _contiguous_rows(self, *, or_single: bool) -> bool:
        """Whether the last dimension is contiguous; `or_single` also accepts one of size 1 in q, k and v."""
        sure, mask = self._sure, self._call.mask
        rows = all(
            sure(t.stride(-1) == 1) or (or_single and sure(t.shape[-1] == 1))
            for t in (self._call.query, self._call.key, self._call.value)
        )
        return rows and (mask is None or sure(mask.stride(-1) == 1) or sure(mask.shape[-1] == 1))

    def _same_heads(self) -> bool:
        """Whether no heads are shared; seen on an H200: grouped heads are not for the memory-efficient kernels."""
        heads = [t.shape[1] for t in (self._call.query, self._call.key, self._call.value)]
        return bool(self._sure(heads[0] == heads[1]) and self._sure(heads[0] == heads[2]))

    def _needs_grad(self) -> bool:
        tensors = (self._call.query, self._call.key, self._call.value)
        return torch.is_grad_enabled() and any(t.requires_grad for t in tensors)

    def _flash(self) -> bool:
        sure, call, cc = self._sure, self._call, self._capability
        q, k, v = self._head_sizes
        small_registers = (8, 6) <= cc <= (8, 9) or (12, 0) <= cc <= (12, 1)
        backward_fits = sure(q <= 192) or (call.dropout == 0 and sure(q > 224))
        return (
            torch._C._get_flash_sdp_enabled()
            and call.mask is None
            and (8, 0) <= cc <= (12, 1)
            and self._low_precision
            and self._dense
            and sure(q == k)
            and sure(q == v)
            and sure(q <= 256)
            and not (self._needs_grad() and small_registers and not backward_fits)
            and (not call.causal or sure(call.query.shape[2] == call.key.shape[2]))
            and self._contiguous_rows(or_single=True)
        )

    def _efficient(self) -> bool:
        sure, cc = self._sure, self._capability
        q, k, v = self._head_sizes
        if cc >= (8, 0):
            alignment = 8 if self._half else 4
            dtypes = {torch.float16, torch.float32, torch.bfloat16}
        else:
            alignment = 8 if self._half and cc >= (7, 0) else 1
            dtypes = {torch.float16, torch.float32}
        return (
            torch._C._get_mem_efficient_sdp_enabled()
            and (5, 0) <= cc <= (12, 1)
            and self._call.query.dtype in dtypes
            and self._dense
            and self._same_heads()
            and sure(q == k)
            and sure(q % alignment == 0)
            and sure(v % alignment == 0)
            and self._contiguous_rows(or_single=False)
            and not (self._device.is_amd and self._call.grouped)
        )

    def _cudnn(self) -> bool:
        sure, call, cc = self._sure, self._call, self._capability
        q, k, v = self._head_sizes
        limit = 256 if cc == (9, 0) else 192 if cc[0] == 10 and sure(q == 192) and sure(v == 128) else 128
        deterministic = torch.are_deterministic_algorithms_enabled()
        return (
            torch._C._get_cudnn_sdp_enabled()
            and cc >= (8, 0)
            and self._low_precision
            and self._dense
            and self._contiguous_rows(or_single=True)
            and not (deterministic and not torch.is_deterministic_algorithms_warn_only_enabled())
            and sure(q <= limit)
            and sure(v <= limit)
            and sure(q % 8 == 0)
            and sure(v % 8 == 0)
            and sure(q == k)
            and not sure(call.key.shape[2] == 1)
            and not (call.dropout > 0 and sure(call.query.shape[2] == 1))
        )
