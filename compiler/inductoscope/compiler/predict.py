"""Predicted time of a kernel: a launch floor plus memory traffic, or arithmetic where that takes longer.

A model, not a measurement, and labelled as such.  The constants come from 316 Inductor kernels of 100 programs, timed
on one H200 (torch 2.11, L2 flushed, median of repeated launches).  Fitted on one half of them and judged on the
other, predicted over measured was 0.72 / 0.98 / 1.16 at the tenth, fiftieth and ninetieth percentile; 97 % were within
a factor of two.  No other device was measured: for those the floor is an assumption, and only bandwidth and peak are
their own.
"""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass

from inductoscope.protocol.devices import Device
from inductoscope.protocol.report import Kernel, Predicted

MODEL = "roofline fitted on an H200"

_FLOOR_US = 4.75
_OF_BANDWIDTH = 0.78
# Not fitted here: what aligned 16-bit matmuls of an H200 reached (36 shapes).
_OF_TENSOR_PEAK = 0.7
# Plain float32 arithmetic at this share of its peak; an assumption, which matters for no kernel of those timed.
_OF_FLOAT32_PEAK = 0.5

# Measured over predicted: nine in ten plain kernels were in this range.
_LOW, _HIGH = 0.8, 1.4
# Long rows are read once a loop, but counted once: up to this.
_HIGH_REREAD = 2.5
# Atomics, spills and random numbers: up to this, with one outlier at 6 (an `index_put` with many collisions).
_HIGH_RISKY = 4.0

_RISKY = re.compile(r"\btl\.atomic_|\b(?:tl|triton_helpers)\.rand")
_LOOP = re.compile(r"^\s+for r\w*offset in", re.MULTILINE)


class Bound(enum.Enum):
    """What the time of a kernel is mostly made of."""

    FLOOR = "floor"  # launching it takes longer than its traffic
    MEMORY = "memory"
    COMPUTE = "compute"


@dataclass(frozen=True)
class Work:
    """What a kernel does: bytes moved to and from memory, arithmetic operations, and whether in 16-bit matrix units."""

    bytes_moved: int
    flops: int = 0
    on_tensor_units: bool = False


def predict(kernel: Kernel, device: Device) -> Predicted | None:
    """The time of `kernel` on `device`, or None where its traffic is not known.  Spills count once assembled."""
    if kernel.bytes_read is None or kernel.bytes_written is None:
        return None
    source = kernel.source or ""
    work = Work(kernel.bytes_read + kernel.bytes_written, kernel.flops or 0, "tl.dot" in source)
    spills = kernel.resources.spills if kernel.resources is not None else 0
    return time_of(work, device, _high(source, spills))


def time_of(work: Work, device: Device, high: float = _HIGH) -> Predicted:
    """The model itself; `high` is how many times longer it may take."""
    memory = work.bytes_moved / (device.bandwidth_gbps * 1e3 * _OF_BANDWIDTH)
    peak, share = (
        (device.tensor_tflops, _OF_TENSOR_PEAK) if work.on_tensor_units else (device.float32_tflops, _OF_FLOAT32_PEAK)
    )
    compute = work.flops / (peak * 1e6 * share)
    longest = max(memory, compute)
    us = _FLOOR_US + longest
    above_floor = Bound.MEMORY if memory >= compute else Bound.COMPUTE
    bound = Bound.FLOOR if longest < _FLOOR_US else above_floor
    return Predicted(round(us, 2), bound.value, MODEL, round(us * _LOW, 2), round(us * high, 2))


def _high(source: str, spills: int) -> float:
    if spills or _RISKY.search(source):
        return _HIGH_RISKY
    return _HIGH_REREAD if len(_LOOP.findall(source)) > 1 else _HIGH
