"""A read of a tensor inside a list comprehension."""

import torch


def peaks(x):
    y = x * 2
    values = [row.max().item() for row in y]  # expect: graph-break GB0124 split
    return y + sum(values)


ENTRY = "peaks"


def get_inputs():
    return [torch.randn(3, 4)]
