"""How many blocks of a kernel fit on a multiprocessor at a time, and what keeps it from being more.

The arithmetic of NVIDIA's occupancy calculator (`cuda_occupancy.h`): registers are handed out a warp at a time from
four partitions, shared memory a block at a time.  CDNA compute units are four SIMDs too, with figures of their own.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from inductoscope.protocol.devices import Limits

_PARTITIONS = 4


class Limiter(enum.Enum):
    """What runs out first."""

    WARPS = "warps"
    BLOCKS = "blocks"
    REGISTERS = "registers"
    SHARED_MEMORY = "shared memory"


@dataclass(frozen=True)
class Occupancy:
    """`fraction` of the warps that a multiprocessor can hold; `limited_by` is None when all of them fit."""

    fraction: float
    blocks: int
    limited_by: Limiter | None


def occupancy(limits: Limits, warps: int, registers: int, shared_bytes: int) -> Occupancy:
    """For blocks of `warps` warps, `registers` 32-bit registers a thread and `shared_bytes` of shared memory a block.

    A block that does not fit at all gives a fraction of 0.
    """
    most_warps = limits.threads // limits.warp
    fits = {
        Limiter.WARPS: most_warps // warps,
        Limiter.BLOCKS: limits.blocks,
        Limiter.REGISTERS: _by_registers(limits, warps, registers),
        Limiter.SHARED_MEMORY: _by_shared_memory(limits, shared_bytes),
    }
    limiter, blocks = min(fits.items(), key=lambda item: item[1])
    fraction = blocks * warps / most_warps
    return Occupancy(fraction, blocks, None if fraction == 1.0 else limiter)


def _by_registers(limits: Limits, warps: int, registers: int) -> int:
    per_warp = _up(max(1, registers) * limits.warp, limits.register_unit)
    warps_of_partition = limits.registers // _PARTITIONS // per_warp
    return warps_of_partition * _PARTITIONS // warps


def _by_shared_memory(limits: Limits, shared_bytes: int) -> int:
    if shared_bytes > limits.shared_per_block:
        return 0
    per_block = _up(shared_bytes + limits.shared_reserved, limits.shared_unit)
    return limits.shared // per_block if per_block else limits.blocks


def _up(value: int, unit: int) -> int:
    return -(-value // unit) * unit
