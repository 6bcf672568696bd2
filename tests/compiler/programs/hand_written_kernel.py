"""A hand-written Triton kernel, launched from a compiled function and beside it."""

import torch
import triton
import triton.language as tl

REQUIRES = "cuda"
BACKEND = "inductor"
ENTRY = "inside"


@triton.jit
def double_kernel(src, dst, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(dst + at, tl.load(src + at, mask=at < n) * 2, mask=at < n)


def inside(x):
    y, out = x + 1, torch.empty_like(x)
    double_kernel[(1,)](y, out, x.numel(), BLOCK=64)
    return out.sin()


def beside(x):
    out = torch.empty_like(x)
    double_kernel[(1,)](x, out, x.numel(), BLOCK=64)  # beside
    return out


def exercise(fn):
    x = torch.ones(8, device="cuda")
    for _ in range(3):
        fn(x)
    beside(beside(x))
