"""Occupancy against figures worked out by hand from NVIDIA's occupancy calculator."""

import pytest

from inductoscope.compiler.occupancy import Limiter, occupancy
from inductoscope.protocol import devices


@pytest.mark.parametrize(
    ("device", "warps", "registers", "shared", "fraction", "limiter"),
    [
        ("H200", 4, 32, 0, 1.0, None),
        ("H200", 1, 16, 0, 0.5, Limiter.BLOCKS),  # 32 blocks of one warp
        ("H200", 8, 255, 0, 0.125, Limiter.REGISTERS),  # 256 x 32 = 8192 a warp, 8 warps in all
        ("H200", 4, 33, 0, 0.75, Limiter.REGISTERS),  # 1280 a warp: 12 warps in each of four partitions
        ("H200", 4, 32, 100_000, 0.125, Limiter.SHARED_MEMORY),  # two blocks in 228 KiB
        ("H200", 32, 65, 0, 0.0, Limiter.REGISTERS),  # 1024 threads of 72 registers are too many
        ("T4", 4, 32, 0, 1.0, None),
        ("T4", 1, 16, 0, 0.5, Limiter.BLOCKS),  # 16 blocks of 32 warps
        ("RTX4090", 32, 32, 0, 2 / 3, Limiter.WARPS),  # 48 warps hold one block of 32
        ("MI300X", 4, 128, 0, 0.5, Limiter.REGISTERS),  # four waves on each of four SIMDs
        ("MI300X", 4, 16, 40_000, 0.125, Limiter.SHARED_MEMORY),  # one block in 64 KiB
    ],
)
def test_occupancy(
    device: str, warps: int, registers: int, shared: int, fraction: float, limiter: Limiter | None
) -> None:
    found = occupancy(devices.find(device).limits, warps, registers, shared)
    assert found.fraction == pytest.approx(fraction)
    assert found.limited_by is limiter


def test_more_shared_memory_than_a_block_can_have_fits_nowhere() -> None:
    limits = devices.find("A100").limits
    assert occupancy(limits, 4, 32, limits.shared_per_block).blocks == 1
    assert occupancy(limits, 4, 32, limits.shared_per_block + 1).blocks == 0
