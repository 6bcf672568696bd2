"""flex_attention with a mask and a score function."""

import torch
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

ENTRY = "run"


def causal(b, h, q, k):
    return q >= k


mask = create_block_mask(causal, None, None, 128, 128, device="cpu")


def run(q, k, v):
    return flex_attention(q, k, v, block_mask=mask, score_mod=lambda s, b, h, i, j: s + (i - j) * 0.1)


def get_inputs():
    return [torch.randn(1, 2, 128, 16) for _ in range(3)]
