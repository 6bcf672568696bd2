"""Which attention a device picks, against what a real H200 picked (torch 2.11, `torch._fused_sdp_choice`)."""

import pytest
import torch

from inductoscope.compiler.simgpu.sdpa import Backend, Call, choose
from inductoscope.protocol.devices import find

H200 = find("H200")


def causal(dtype: torch.dtype, key_heads: int) -> Call:
    query = torch.randn(1, 4, 24, 32, dtype=dtype, requires_grad=True)
    key, value = (torch.randn(1, key_heads, 24, 32, dtype=dtype, requires_grad=True) for _ in range(2))
    return Call(query, key, value, mask=None, dropout=0.0, causal=True, grouped=key_heads != 4)


@pytest.mark.parametrize(
    ("dtype", "key_heads", "picked"),
    [
        (torch.float32, 4, Backend.EFFICIENT),
        (torch.float32, 2, Backend.MATH),
        (torch.float32, 1, Backend.MATH),
        (torch.bfloat16, 4, Backend.CUDNN),
        (torch.bfloat16, 2, Backend.CUDNN),
        (torch.bfloat16, 1, Backend.CUDNN),
    ],
)
def test_heads_that_share_keys_are_not_for_the_memory_efficient_kernels(dtype, key_heads, picked):
    assert choose(H200, causal(dtype, key_heads)) is picked
