"""A break where none is allowed."""

import torch


def peek(x):
    y = x.relu()
    print(y)  # expect: graph-break GB0059
    return y + 1


ENTRY = "peek"
COMPILE_KWARGS = {"fullgraph": True}


def get_inputs():
    return [torch.randn(3)]
