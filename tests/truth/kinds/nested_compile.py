"""A compiled function that calls another compiled one, and a module whose part is compiled by itself."""

import torch
from torch import nn

ENTRY = "outer"


@torch.compile(backend="eager")
def inner(x):
    print("inner")
    return x.relu() + 1


part = nn.Linear(4, 4)
part.compile(backend="eager")


def outer(x):
    y = inner(x) * 2
    return part(y).sum()


def exercise(fn):
    fn(torch.randn(3, 4))
    fn(torch.randn(5, 4))
