"""A hand-written Triton kernel between ordinary operators."""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def scale_kernel(src, dst, n, factor, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    value = tl.load(src + at, mask=inside)
    tl.store(dst + at, value * factor, mask=inside)


class Model(nn.Module):
    @torch.no_grad()
    def forward(self, x):
        x = x + 1
        out = torch.empty_like(x)
        scale_kernel[(triton.cdiv(x.numel(), 128),)](x, out, x.numel(), 0.5, BLOCK=128)
        return out.exp()


def get_inputs():
    return [torch.randn(16, 64)]
