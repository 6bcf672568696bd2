"""Hand-written Triton kernels, and what they compute written with operators."""

import torch
import triton
import triton.language as tl


@triton.jit
def square(x):
    return x * x


@triton.jit
def squares_kernel(src, dst, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(dst + at, square(tl.load(src + at, mask=inside)), mask=inside)


@triton.autotune(configs=[triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 128})], key=["n"])
@triton.jit
def tuned_kernel(src, dst, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(dst + at, tl.load(src + at, mask=at < n) + 1, mask=at < n)


@triton.heuristics({"BLOCK": lambda arguments: triton.next_power_of_2(arguments["n"])})
@triton.jit
def sum_kernel(src, dst, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(dst, tl.sum(tl.load(src + at, mask=at < n, other=0.0), axis=0))


def program_with_a_helper(device):
    x = torch.arange(100.0, device=device)
    if device == "cpu":
        return x.pow(2).tolist()
    out = torch.empty_like(x)
    squares_kernel[(triton.cdiv(100, 32),)](x, out, 100, BLOCK=32)
    return out.tolist()


def program_in_order_with_operators(device):
    x = torch.ones(64, device=device)
    if device == "cpu":
        return ((x * 3).pow(2) * 2).tolist()
    out = torch.zeros_like(x)
    x.mul_(3)
    squares_kernel[(1,)](x, out, 64, BLOCK=64)
    x.zero_()
    out.mul_(2)
    return out.tolist()


def program_autotuned(device):
    x = torch.arange(100.0, device=device)
    if device == "cpu":
        return (x + 1).tolist()
    out = torch.empty_like(x)
    tuned_kernel[lambda meta: (triton.cdiv(100, meta["BLOCK"]),)](x, out, 100)
    return out.tolist()


def program_with_heuristics(device):
    x = torch.arange(100.0, device=device)
    if device == "cpu":
        return x.sum().item()
    out = torch.empty((), device=device)
    sum_kernel[(1,)](x, out, 100)
    return out.item()


def program_inside_a_graph(device):
    def f(x):
        out = torch.empty_like(x)
        squares_kernel[(triton.cdiv(x.numel(), 32),)](x, out, x.numel(), BLOCK=32)
        return out + 1

    x = torch.arange(100.0, device=device)
    if device == "cpu":
        return (x * x + 1).tolist()
    return torch.compile(f, backend="eager")(x).tolist()
