"""The program's own error, raised in compiled code."""
import torch


def check(x):
    if x.shape[0] != 4:
        raise ValueError(f"four rows, not {x.shape[0]}")  # expect: graph-break GB0088 whole x2
    return x * 2


def run(x):
    return check(x + 1)


ENTRY = "run"


def get_inputs():
    return [torch.randn(3)]
