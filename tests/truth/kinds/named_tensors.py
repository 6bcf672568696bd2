"""A named tensor as an argument."""

import torch

ENTRY = "run"


def run(x):
    return x.sum("C") + 1


def get_inputs():
    return [torch.randn(2, 3, names=("N", "C"))]
