"""What both models of time share: bounds, and how an estimate with its range is written down."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from inductoscope.protocol import devices
from inductoscope.protocol.devices import Device
from inductoscope.protocol.report import Predicted

MEASURED = devices.find("H200")
"""The device whose times the constants come from."""

TF32_OF_HALF = 0.5
"""Matrix units do half as many TF32 operations as 16-bit ones (NVIDIA datasheets since A100)."""

_AMPERE = 80
_LOWER_ELSEWHERE, _HIGHER_ELSEWHERE = 0.7, 1.5
"""How much wider a range is on a device that was not measured: an assumption."""


def pace(device: Device) -> float:
    """How many instructions `device` issues in the time in which the measured one issues one: an assumption."""
    return (device.multiprocessors * device.clock_mhz) / (MEASURED.multiprocessors * MEASURED.clock_mhz)


def has_tf32(device: Device) -> bool:
    """Whether float32 can be computed by matrix units as TF32: on NVIDIA cards since Ampere."""
    return not device.is_amd and _generation(device) >= _AMPERE


def has_bfloat16_units(device: Device) -> bool:
    """Whether matrix units take bfloat16: on NVIDIA cards since Ampere."""
    return not device.is_amd and _generation(device) >= _AMPERE


def _generation(device: Device) -> int:
    return int(device.arch.removeprefix("sm_"))


class Bound(enum.Enum):
    """What the time of a kernel is mostly made of."""

    FLOOR = "floor"  # launching it takes longer than its work
    MEMORY = "memory"
    COMPUTE = "compute"


@dataclass(frozen=True)
class Range:
    """How many times shorter or longer than predicted nine in ten measured times were."""

    low: float
    high: float


def estimate(floor_us: float, memory_us: float, compute_us: float, device: Device, span: Range) -> Predicted:
    """A floor plus whatever takes longer, traffic or arithmetic (microseconds)."""
    longest = max(memory_us, compute_us)
    above_floor = Bound.MEMORY if memory_us >= compute_us else Bound.COMPUTE
    bound = Bound.FLOOR if longest < floor_us else above_floor
    us, low, high = floor_us + longest, span.low, span.high
    model = "roofline fitted on an H200"
    if device.key != MEASURED.key:
        low, high = low * _LOWER_ELSEWHERE, high * _HIGHER_ELSEWHERE
        model += ", scaled by the figures of this device"
    return Predicted(round(us, 2), bound.value, model, round(us * low, 2), round(us * high, 2))
