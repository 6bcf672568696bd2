"""A cached method of a submodule, called twice."""
import functools

import torch
from torch import nn


class Table(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    @functools.lru_cache
    def width(self, n):
        return n * 2

    def forward(self, x):
        return self.lin(x) * self.width(x.shape[0])  # expect: warning


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = Table()

    def forward(self, x):
        return self.table(x) + self.table(x + 1)


def get_inputs():
    return [torch.randn(2, 4)]
