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


@pytest.mark.parametrize(
    ("heads", "head_size", "dropout", "device", "picked"),
    [
        (4, 256, 0.0, "H200", Backend.CUDNN),  # seen on the card, as is the next
        (8, 64, 0.1, "H200", Backend.CUDNN),
        (4, 256, 0.0, "A100", Backend.FLASH),
        (4, 264, 0.0, "H200", Backend.EFFICIENT),
    ],
)
def test_large_heads_and_dropout_are_for_cudnn_on_hopper(heads, head_size, dropout, device, picked):
    q, k, v = (torch.randn(2, heads, 16, head_size, dtype=torch.bfloat16) for _ in range(3))
    call = Call(q, k, v, mask=None, dropout=dropout, causal=True, grouped=False)
    assert choose(find(device), call) is picked
