"""Whether padding an unaligned matmul pays, by dtype and card."""

from __future__ import annotations

import pytest
import torch

from inductoscope.compiler.simgpu.decisions import Matmul, estimate_padding
from inductoscope.protocol import devices

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("dtype", "tf32", "device", "pays"),
    [
        (torch.bfloat16, False, "H200", True),
        (torch.float32, True, "H200", True),
        (torch.float32, False, "H200", False),
        (torch.float32, True, "T4", False),
    ],
)
def test_padding_pays_where_matrix_units_need_alignment(
    dtype: torch.dtype, tf32: bool, device: str, pays: bool
) -> None:
    found = estimate_padding(Matmul(1, 4095, 4095, 4095, dtype), devices.find(device), tf32=tf32)
    assert found.pays is pays


def test_float32_is_aligned_to_four_elements() -> None:
    aligned, half = (Matmul(1, 4096, 4092, 4092, dtype) for dtype in (torch.float32, torch.float16))
    assert not estimate_padding(aligned, devices.find("H200"), tf32=True).pays
    assert estimate_padding(half, devices.find("H200"), tf32=True).pays


def test_tf32_takes_twice_as_long_as_sixteen_bits() -> None:
    half, single = (
        estimate_padding(Matmul(1, 8191, 8191, 8191, dtype), devices.find("H200"), tf32=True)
        for dtype in (torch.bfloat16, torch.float32)
    )
    assert single.plain_us == pytest.approx(2 * half.plain_us)
    assert single.padded_us == pytest.approx(2 * half.padded_us)
