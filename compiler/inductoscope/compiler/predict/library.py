"""Predicted time of a library call: matrix products, convolutions, attention.

Each family is a floor, a cost for every step along the inner dimension (one block of the result walks all of it), and
what takes longer, traffic or arithmetic, at the share of the peak that the family reached.  Fitted to 690 different
calls of the programs in `benchmarks/fidelity_programs` and of KernelBench, timed on an H200 (torch 2.11, L2 flushed,
median).  Products fitted on one half were within 1.25x on 75 % (float32) to 100 % (16 bit) of the other half, and
within 1.5x on 92 to 100 %.  Of 380 convolutions 83 % are within 1.5x and 92 % within 2x; with constants fitted on half
of the programs 61 % and 91 % of the other half were, since cuDNN chooses among many algorithms.
"""

from __future__ import annotations

import enum
import math
import re
from dataclasses import dataclass, replace

from inductoscope.compiler.predict.model import TF32_OF_HALF, Range, estimate, has_bfloat16_units, has_tf32
from inductoscope.protocol.devices import Device
from inductoscope.protocol.report import Kernel, Predicted

_COMMA = re.compile(r",\s*(?![^()]*\))")  # none inside of parentheses: `Max(s0, 2)=4` is one size
_OF_GPUS = re.compile(r"cu[A-Z]|CUTLASS|FlashAttention|memory-efficient attention")  # the same calls exist on CPUs
_NAME = re.compile(r"(?:^|\.)_?(?P<op>addmm|baddbmm|bmm|mm|convolution\w*|scaled_dot_product_\w+)(?:$|[.(])")
_HALF = frozenset({"f16", "bf16"})
_FLOAT32 = "f32"


@dataclass(frozen=True)
class Operand:
    """A tensor argument: dtype as the report writes it, and sizes."""

    dtype: str
    sizes: tuple[int, ...]

    @property
    def is_half(self) -> bool:
        """Whether 16-bit matrix units take it."""
        return self.dtype in _HALF

    @property
    def bytes_each(self) -> int:
        """Bytes of an element; 1 for a type that tells none."""
        bits = re.match(r"[a-z]*(\d+)", self.dtype)
        return max(1, int(bits[1]) // 8) if bits else 1


@dataclass(frozen=True)
class Family:
    """Constants of a kind of call: microseconds, microseconds a step, and shares of the device's figures."""

    floor_us: float
    step_us: float
    of_peak: float
    of_bandwidth: float
    span: Range
    most_steps: int = 4096


class ConvolutionKind(enum.Enum):
    """Convolutions that cuDNN computes alike."""

    POINTWISE = "1x1"
    PLANAR = "1d or 2d"
    SPATIAL = "3d"
    TRANSPOSED = "transposed"
    TRANSPOSED_SPATIAL = "transposed 3d"
    GROUPED = "grouped"


_PLAIN, _UNSURE = Range(0.75, 1.4), Range(0.45, 2.2)
_HALF_PRODUCT = Family(6.1, 0.0013, 1.0, 0.93, _PLAIN)
# One whose inner or outer size is no multiple of 8 elements (16 bytes): the share of the peak that 36 such shapes were
# fitted with where Inductor decides about padding them.
_UNALIGNED_HALF_PRODUCT = Family(6.1, 0.0013, 0.144, 0.93, Range(0.6, 1.7))
# Not fitted: floor and steps of 16-bit products, shares of the peaks of float32 ones.
_TF32_PRODUCT = Family(6.1, 0.0013, 0.705, 0.783, Range(0.5, 1.7))
# Operands that are not aligned to 16 bytes: at worst as without TF32.
_UNALIGNED_TF32 = Range(0.3, 1.6)
_PRODUCT = Family(8.4, 0.0036, 0.705, 0.783, Range(0.65, 1.6))
# With a bias the product goes to cuBLASLt, which does not split the inner dimension among blocks.
_PRODUCT_WITH_BIAS = Family(6.3, 0.0198, 0.736, 1.0, Range(0.75, 1.6))
_CONVOLUTIONS = {
    ConvolutionKind.POINTWISE: Family(7.6, 0.008, 0.262, 0.715, _UNSURE, most_steps=1020),
    ConvolutionKind.PLANAR: Family(9.0, 0.0223, 0.365, 0.122, _UNSURE, most_steps=785),
    ConvolutionKind.SPATIAL: Family(8.9, 0.0237, 0.151, 0.531, _UNSURE, most_steps=255),
    ConvolutionKind.TRANSPOSED: Family(11.9, 0.0239, 0.373, 0.129, _UNSURE, most_steps=443),
    ConvolutionKind.TRANSPOSED_SPATIAL: Family(23.1, 6.71, 0.0805, 0.683, Range(0.35, 2.5), most_steps=40),
    ConvolutionKind.GROUPED: Family(0.5, 0.561, 0.0389, 0.179, Range(0.6, 1.6), most_steps=94),
}
# Channels are computed in blocks, (of the result, of the input): what a block has too many is arithmetic for nothing.
_BLOCKS = {
    ConvolutionKind.POINTWISE: (64, 32),
    ConvolutionKind.PLANAR: (64, 32),
    ConvolutionKind.SPATIAL: (32, 16),
    ConvolutionKind.TRANSPOSED: (64, 16),
    ConvolutionKind.TRANSPOSED_SPATIAL: (64, 16),
    ConvolutionKind.GROUPED: (32, 8),
}
_BACKWARD_FACTOR = 3.0  # two gradients, and layouts to convert
_ATTENTION = Family(9.3, 0.0, 0.29, 0.7, _PLAIN)
_MASK_US = 6.0
_EFFICIENT = Family(6.0, 0.113, 0.67, 0.7, Range(0.7, 1.6), most_steps=1024)
_ATTENTION_BACKWARD = 2.5


@dataclass(frozen=True)
class LibraryCall:
    """An operator by name, the tensors that it is given as the report writes them, its operations and its traffic.

    `tf32` says whether the program lets it round float32 to TF32.
    """

    name: str
    operands: tuple[str, ...]
    flops: int | None
    bytes_moved: int | None
    tf32: bool = False


def library_call(kernel: Kernel, device: Device) -> Predicted | None:
    """The time of a library call on `device`; None for operators without a model, or with sizes that are not known."""
    if kernel.library is None or not _OF_GPUS.match(kernel.library):
        return None
    known = kernel.bytes_read is not None and kernel.bytes_written is not None
    moved = (kernel.bytes_read or 0) + (kernel.bytes_written or 0) if known else None
    return time_of_call(LibraryCall(kernel.name, kernel.operands, kernel.flops, moved, kernel.tf32), device)


def time_of_call(call: LibraryCall, device: Device) -> Predicted | None:
    """The same for a call that is known to run on the GPU; None on AMD's."""
    if device.is_amd:
        return None  # other libraries, of which none was timed
    named = _NAME.search(call.name)
    tensors = tuple(map(operand, call.operands))
    if named is None or call.flops is None or call.bytes_moved is None:
        return None
    if named["op"].startswith("convolution"):
        return _convolution(call, named["op"], tensors, device)
    if named["op"].startswith("scaled_dot_product"):
        return _attention(call, named["op"], tensors, device)
    return _product(call, named["op"], tensors, device)


def operand(text: str) -> Operand:
    """A tensor as the report writes it: `bf16[4, s77=128]`; without sizes where one is symbolic and has no value."""
    dtype, _, sizes = text.partition("[")
    numbers = [size.rpartition("=")[2].strip() for size in _COMMA.split(sizes.removesuffix("]"))]
    known = tuple(int(number) for number in numbers if number.isdecimal())
    return Operand(dtype, known if len(known) == len(numbers) else ())


def _product(call: LibraryCall, op: str, operands: tuple[Operand, ...], device: Device) -> Predicted | None:
    if len(operands) < 2 or len(operands[-2].sizes) < 2:
        return None
    first = operands[-2]
    if not _has_model(first, device):
        return None
    if first.is_half:
        aligned = all(size % 8 == 0 for size in (first.sizes[-1], *operands[-1].sizes[-1:]))
        return _timed(
            _HALF_PRODUCT if aligned else _UNALIGNED_HALF_PRODUCT, call, first.sizes[-1], device, device.tensor_tflops
        )
    family = _PRODUCT_WITH_BIAS if op == "addmm" else _PRODUCT
    if call.tf32 and has_tf32(device):
        if all(size % 4 == 0 for size in (first.sizes[-1], *operands[-1].sizes[-1:])):
            return _timed(_TF32_PRODUCT, call, first.sizes[-1], device, device.tensor_tflops * TF32_OF_HALF)
        family = replace(family, span=_UNALIGNED_TF32)
    return _timed(family, call, first.sizes[-1], device, device.float32_tflops)


def _convolution(call: LibraryCall, op: str, operands: tuple[Operand, ...], device: Device) -> Predicted | None:
    backward = "backward" in op
    given = operands[1:] if backward else operands  # the gradient comes first
    if len(given) < 2 or len(given[1].sizes) < 3:
        return None
    value, weight = given[0], given[1]
    kind = _kind(call, value, weight.sizes)
    if not _has_model(value, device) or not all(weight.sizes):
        return None
    peak = _peak_of_convolution(call, value, device)
    after, before = _channels(kind, weight.sizes)
    outer, inner = _BLOCKS[kind]
    padding = math.ceil(after / outer) * outer / after * math.ceil(before / inner) * inner / before
    steps = before * math.prod(weight.sizes[2:])
    predicted = _timed(_CONVOLUTIONS[kind], call, steps, device, peak / padding)
    return _scaled(predicted, _BACKWARD_FACTOR / 2) if backward else predicted  # the operations count twice already


def _peak_of_convolution(call: LibraryCall, value: Operand, device: Device) -> float:
    if value.is_half:
        return device.tensor_tflops
    return device.tensor_tflops * TF32_OF_HALF if call.tf32 and has_tf32(device) else device.float32_tflops


def _has_model(value: Operand, device: Device) -> bool:
    """Whether the rate of such operands is among the figures: not of float64, integers, complex numbers and fp8."""
    return value.dtype in (_FLOAT32, "f16") or (value.dtype == "bf16" and has_bfloat16_units(device))


def _kind(call: LibraryCall, value: Operand, weight: tuple[int, ...]) -> ConvolutionKind:
    """Told from sizes and counts, since the report of a call does not have all of its arguments."""
    spatial = len(weight) == 5
    if weight[1] != value.sizes[1]:
        if weight[0] != value.sizes[1] or _gathers(call, value, weight):
            return ConvolutionKind.GROUPED
        return ConvolutionKind.TRANSPOSED_SPATIAL if spatial else ConvolutionKind.TRANSPOSED
    if spatial:
        return ConvolutionKind.SPATIAL
    return ConvolutionKind.POINTWISE if math.prod(weight[2:]) == 1 else ConvolutionKind.PLANAR


def _gathers(call: LibraryCall, value: Operand, weight: tuple[int, ...]) -> bool:
    """Whether every element of the result is a sum over one filter; in a transposed one, of the input it is."""
    given = math.prod(value.sizes) + math.prod(weight)
    made = (call.bytes_moved or 0) / value.bytes_each - given
    return math.isclose(made * 2 * math.prod(weight[1:]), call.flops or 0, rel_tol=0.02)


def _channels(kind: ConvolutionKind, weight: tuple[int, ...]) -> tuple[int, int]:
    """Channels of the result, and those of the input that one of them is computed from."""
    transposed = kind in (ConvolutionKind.TRANSPOSED, ConvolutionKind.TRANSPOSED_SPATIAL)
    return (weight[1], weight[0]) if transposed else (weight[0], weight[1])


def _attention(call: LibraryCall, op: str, operands: tuple[Operand, ...], device: Device) -> Predicted | None:
    backward = "backward" in op
    given = operands[1:] if backward else operands
    if len(given) < 3 or len(given[1].sizes) < 3:
        return None
    if not _has_model(given[0], device):
        return None
    if given[0].is_half:
        masked = not backward and len(given) > 3 and len(given[3].sizes) >= 2
        extra = _MASK_US if masked else 0.0
        predicted = _timed(_ATTENTION, call, 0, device, device.tensor_tflops, extra)
    else:
        predicted = _timed(_EFFICIENT, call, given[1].sizes[-2], device, device.float32_tflops)
    return _scaled(predicted, _ATTENTION_BACKWARD) if backward else predicted


def _timed(
    family: Family, call: LibraryCall, steps: int, device: Device, tflops: float, extra_us: float = 0
) -> Predicted:
    memory = (call.bytes_moved or 0) / (device.bandwidth_gbps * 1e3 * family.of_bandwidth)
    compute = (call.flops or 0) / (tflops * 1e6 * family.of_peak)
    floor = family.floor_us + family.step_us * min(steps, family.most_steps) + extra_us
    return estimate(floor, memory, compute, device, family.span)


def _scaled(predicted: Predicted, factor: float) -> Predicted:
    us, low, high = (round((value or 0.0) * factor, 2) for value in (predicted.us, predicted.low_us, predicted.high_us))
    return Predicted(us, predicted.bound, predicted.model, low, high)
