"""A helper that breaks, called in a loop: the caller is given up, the helper is split."""
import torch


def clip(x):
    peak = x.abs().max().item()  # expect: graph-break GB0124 whole x2
    return x / max(peak, 1.0)  # expect: recompile


def run(x):
    for _ in range(3):
        x = clip(x * 2)
    return x


ENTRY = "run"


def get_inputs():
    return [torch.randn(4)]
