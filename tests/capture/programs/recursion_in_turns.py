"""Two functions that call each other, and modules inside of modules, which are no repetition worth telling."""
import torch
from torch import nn


class Nested(nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.inner = Nested(depth - 1) if depth else None

    def forward(self, x):
        x = torch.relu(self.linear(x)) * 0.5 + 1
        return x if self.inner is None else self.inner(x)


def even(x, steps):
    x = torch.sin(x) * 2 + x.mean() - 1
    x = x / x.abs().max()
    return x if steps == 0 else odd(x, steps - 1)  # expect: large-graph x30


def odd(x, steps):
    x = torch.cos(x)
    return x if steps == 0 else even(x, steps - 1)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.nested = Nested(12)

    def forward(self, x):
        return even(self.nested(x), 60)


def get_inputs():
    return [torch.randn(2, 4)]
