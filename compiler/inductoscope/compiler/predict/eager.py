"""Predicted time of an operator that runs eagerly, as one kernel or library call of its own.

What a generated kernel of the same traffic would take, times how often the operator goes through its data; library
calls as compiled ones.  Knows operators by name and tensors by their texts; nothing of graphs or of how they were seen.
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass

from inductoscope.compiler.predict.generated import Work, time_of
from inductoscope.compiler.predict.library import LibraryCall, operand, time_of_call
from inductoscope.protocol.devices import Device
from inductoscope.protocol.report import Predicted

HAND_WRITTEN = "hand-written kernel"
"""The name of an operator that launches a Triton kernel of the program's own."""


class Launches(enum.Enum):
    """What the device gets to do for an operator."""

    NOTHING = "nothing"  # it only looks at the same memory in another way, or reserves some
    KERNELS = "kernels"
    UNKNOWN = "unknown"  # more than can be told from the operator alone


@dataclass(frozen=True)
class EagerOp:
    """An operator as eager execution dispatches it.

    `name` is torch's (`aten.add.Tensor`), `operands` its tensors as the report writes them, `bytes_moved` what it reads
    and writes when each tensor goes through memory once, `flops` torch's own count where it has one, `tf32` whether the
    program lets it round float32 to TF32.
    """

    name: str
    operands: tuple[str, ...]
    bytes_moved: int
    flops: int | None = None
    tf32: bool = False
    launches: Launches = Launches.KERNELS

    @property
    def operator(self) -> str:
        """The operator without namespace and overload: `add`."""
        return self.name.split(".")[1] if "." in self.name else self.name


@dataclass(frozen=True)
class EagerRun:
    """What one eager run of a graph dispatches; `missing` says why a part is None, and `branches` whether the graph
    branches or loops by its data.
    """

    forward: tuple[EagerOp, ...] | None
    backward: tuple[EagerOp, ...] | None = None
    missing: str | None = None
    branches: bool = False


@dataclass(frozen=True)
class Manner:
    """How an operator goes about it: kernels that it launches, and how many times each of its bytes moves."""

    kernels: int = 1
    passes: float = 1.0


_PLAIN = Manner()
# By the kernels that ATen's CUDA operators of these names launch.
_MANNERS = {
    "convolution_backward": Manner(2),
    "native_layer_norm_backward": Manner(2),
    "native_group_norm": Manner(2, 1.5),
    "native_group_norm_backward": Manner(4, 1.5),
    "native_batch_norm": Manner(2, 1.5),
    "_native_batch_norm_legit": Manner(2, 1.5),
    "native_batch_norm_backward": Manner(2, 1.5),
    "_scaled_dot_product_flash_attention_backward": Manner(3),
    "_scaled_dot_product_cudnn_attention_backward": Manner(3),
    "_scaled_dot_product_efficient_attention_backward": Manner(3),
    "topk": Manner(2, 2.0),
    "cumsum": Manner(1, 1.5),
    "var_mean": Manner(1, 1.5),
    "nll_loss_forward": Manner(1),
}
_LAYER_NORM_US = 2e-3
"""An element of a row: 16 rows of 4,194,304 float32 took 8.26 ms on an H200 (torch 2.11)."""
# What they take depends on more than their traffic: on values, on the library's plan, on how often they sort.
_UNKNOWN = frozenset(
    {
        "sort", "argsort", "unique", "_unique2", "nonzero", "index_put_", "index_put", "_index_put_impl_", "histc",
        "bincount", "embedding_dense_backward", "searchsorted", "bucketize", "lstm", "gru", "_cudnn_rnn", "kthvalue",
        "mode", "median", "masked_select", "repeat_interleave", "multinomial", "randperm", "_ctc_loss",
    }
)  # fmt: skip
_UNKNOWN_KINDS = (
    "linalg_", "_linalg_", "fft_", "_fft_", "cholesky", "triangular_solve", "lu_", "_cdist", "grid_sampler",
)  # fmt: skip


def kernels_of(op: EagerOp) -> int:
    """How many kernels and library calls the operator launches; 1 where that is not known."""
    if op.launches is Launches.NOTHING:
        return 0
    extra = 1 if _adds_a_bias(op) else 0
    return _MANNERS.get(op.operator, _PLAIN).kernels + extra


def time_of_operator(op: EagerOp, device: Device) -> Predicted | None:
    """The time of the operator's kernels on `device`; None where nothing is known to predict it from."""
    unknown = op.operator in _UNKNOWN or op.operator.startswith(_UNKNOWN_KINDS)
    if op.launches is Launches.UNKNOWN or unknown or not op.name.startswith("aten."):
        return None
    call = time_of_call(LibraryCall(op.name, op.operands, op.flops, op.bytes_moved, op.tf32), device)
    if call is not None or op.flops:
        return call  # with operations to count and no model for them, traffic alone would say too little
    moved = int(op.bytes_moved * _MANNERS.get(op.operator, _PLAIN).passes)
    return time_of(Work(moved, one_block_us=_row_us(op)), device)


def _row_us(op: EagerOp) -> float:
    """What a layer norm takes for a row, which one block computes; its weights are as many as a row has elements."""
    if op.operator != "native_layer_norm" or len(op.operands) < 2:
        return 0.0
    return math.prod(operand(op.operands[1]).sizes) * _LAYER_NORM_US


def _adds_a_bias(op: EagerOp) -> bool:
    """Eager convolutions add their bias with a kernel of its own."""
    return op.operator == "convolution" and len(op.operands) > 2
