"""Choices that Inductor makes by asking the card: whether padding a matmul pays, and the clock rate.

Timing is replaced by what was recorded on the card, else by a stated rule, and a note says which.  Choices for other
devices are left to torch.
Autotuning and CUDA graphs are no matter of the device: whoever records Inductor's output settles them for every device.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from inductoscope.compiler.compat.card import Sizes, sizes_of
from inductoscope.compiler.predict.model import TF32_OF_HALF, has_tf32
from inductoscope.compiler.simgpu.patching import Patches
from inductoscope.compiler.simgpu.records import Journal, Topic, innermost_in_trace
from inductoscope.compiler.simgpu.target import TargetDevice
from inductoscope.protocol.devices import Device
from inductoscope.protocol.recording import RecordedPadding
from inductoscope.protocol.report import Basis, Choice, Decision, DecisionKind, Place


def install(target: TargetDevice, journal: Journal, patches: Patches) -> None:
    """Patch the padding of matmuls and the clock rate."""
    _padding(target, journal, patches)
    patches.replace(
        torch._utils_internal, "max_clock_rate", lambda: target.device.clock_mhz, why="asks nvidia-smi for the clock"
    )


@dataclass(frozen=True)
class Matmul:
    """`batch` products of (m x k) and (k x n)."""

    batch: int
    m: int
    k: int
    n: int
    dtype: torch.dtype

    @property
    def sizes(self) -> Sizes:
        """Batch, m, k and n."""
        return self.batch, self.m, self.k, self.n

    @property
    def text(self) -> str:
        """`MxKxN`, the sizes of one of the batch."""
        return f"{self.m}x{self.k}x{self.n}"

    @property
    def flops(self) -> float:
        """Multiplications and additions."""
        return 2.0 * self.batch * self.m * self.k * self.n


@dataclass(frozen=True)
class PaddingEstimate:
    """Times in microseconds of the matmul as it is, and with its operands copied to aligned ones first."""

    plain_us: float
    padded_us: float
    pays: bool


# From 36 shapes timed on an H200 (torch 2.11): an unaligned 16-bit matmul reaches 0.144 of the tensor peak, an aligned
# one 0.7, neither takes less than a floor, and float32 was never padded.  Agrees with the card on 35 of those 36; at a
# ratio of 1.1 the card itself is a coin toss.  For TF32 the same shares of its own peak are assumed; without it
# alignment makes no difference.
_PLAIN_OF_PEAK, _PADDED_OF_PEAK, _BANDWIDTH_OF_PEAK = 0.144, 0.7, 0.78
_ALIGNED_BYTES = 16
_PLAIN_FLOOR_US, _PADDED_FLOOR_US, _WORTH_IT = 45.0, 160.0, 1.1


def estimate_padding(matmul: Matmul, device: Device, *, tf32: bool) -> PaddingEstimate:
    """Whether copying the operands of an unaligned matmul to aligned sizes would pay on `device`."""
    float32 = matmul.dtype is torch.float32
    on_units = not float32 or (tf32 and has_tf32(device))
    tflops = device.tensor_tflops * (TF32_OF_HALF if float32 else 1.0) if on_units else device.float32_tflops
    peak = tflops * 1e6  # operations a microsecond
    plain = max(_PLAIN_FLOOR_US, matmul.flops / (peak * (_PLAIN_OF_PEAK if on_units else _PADDED_OF_PEAK)))
    copied = matmul.batch * (matmul.m * matmul.k + matmul.k * matmul.n) * 2 * matmul.dtype.itemsize  # read, and written
    copying = copied / (device.bandwidth_gbps * 1e3 * _BANDWIDTH_OF_PEAK)
    padded = max(_PADDED_FLOOR_US, matmul.flops / (peak * _PADDED_OF_PEAK) + copying)
    elements = _ALIGNED_BYTES // matmul.dtype.itemsize
    unaligned = elements > 0 and (matmul.k % elements != 0 or matmul.n % elements != 0)
    return PaddingEstimate(plain, padded, on_units and unaligned and plain > _WORTH_IT * padded)


def _padding(target: TargetDevice, journal: Journal, patches: Patches) -> None:
    from torch._inductor.fx_passes import pad_mm

    asked: dict[str, tuple[Matmul, Place | None]] = {}  # by Inductor's own key, between its two calls for one matmul

    def remember(original: Callable[..., str]) -> Callable[..., str]:
        def bench_key(match: Any, mat1: Any, mat2: Any, *args: Any, **kwargs: Any) -> str:
            key = original(match, mat1, mat2, *args, **kwargs)
            if mat1.device.type == "cuda":
                stack_trace = match.output_node().meta.get("stack_trace")
                asked[key] = _matmul(mat1, mat2), innermost_in_trace(stack_trace, journal.is_user)
            return key

        return bench_key

    def decide(original: Callable[..., Any]) -> Callable[..., Any]:
        def should_pad(key: str) -> Any:
            if key not in asked:
                return original(key)
            matmul, place = asked.pop(key)
            decision = _padding_of(matmul, key, target, place)
            journal.note(Topic.PADDING, decision.text, place, matmul.text)
            journal.decide(decision)
            return decision.shown == _PADDED

        return should_pad

    why = "times the matmul plain and padded on the card"
    patches.wrap(pad_mm, "should_pad_bench_key", remember, why=why)
    patches.wrap(pad_mm, "get_cached_should_pad", decide, why=why)


def _matmul(mat1: Any, mat2: Any) -> Matmul:
    return Matmul(*sizes_of(mat1, mat2), mat1.dtype)


_PADDING = "Not aligned, so that Inductor times two forms on the GPU: matmul"


_PLAIN, _PADDED = "plain", "padded"


def _padding_of(matmul: Matmul, key: str, target: TargetDevice, place: Place | None) -> Decision:
    """Whether the matmul with torch's `key` is padded: as the card decided, else as estimated."""
    recorded = target.replay.padding(key, matmul.sizes)
    if recorded is not None:
        text = _recorded_text(matmul, recorded, target.replay.as_recorded)
        basis, pads = Basis.RECORDED, recorded.pads
        ways: tuple[Choice, ...] = (
            Choice(_PLAIN, recorded.plain_us, not pads),
            Choice(_PADDED, recorded.padded_us, pads),
        )
    else:
        estimate = estimate_padding(matmul, target.device, tf32=torch.backends.cuda.matmul.fp32_precision == "tf32")
        text = _padding_text(matmul, estimate)
        basis, pads = Basis.ESTIMATED, estimate.pays
        times = ((_PLAIN, estimate.plain_us), (_PADDED, estimate.padded_us))
        ways = tuple(Choice(name, estimated_us=round(us, 1)) for name, us in times)
    return Decision(
        kind=DecisionKind.PADDING,
        subject=f"matmul {matmul.text}",
        shown=_PADDED if pads else _PLAIN,
        basis=basis,
        candidates=ways,
        text=text,
        file=place.file if place is not None else None,
        line=place.line if place is not None else None,
    )


def _padding_text(matmul: Matmul, estimate: PaddingEstimate) -> str:
    return (
        f"{_PADDING} {matmul.text}. Estimated of that timing, with what the launches cost: "
        f"plain {estimate.plain_us:.0f} µs, padded {estimate.padded_us:.0f} µs, "
        f"so the {'padded' if estimate.pays else 'plain'} form is shown."
    )


def _recorded_text(matmul: Matmul, recorded: RecordedPadding, as_recorded: str) -> str:
    times = ""
    if recorded.plain_us is not None and recorded.padded_us is not None:
        times = f": plain {recorded.plain_us:.0f} µs, padded {recorded.padded_us:.0f} µs"
    return (
        f"{_PADDING} {matmul.text}. The {'padded' if recorded.pads else 'plain'} form is shown, {as_recorded}{times}."
    )
