"""One compiled function called in a loop over modules: a version for each kind of module."""

import torch
from torch import nn

ENTRY = "apply"


def apply(layer, x):
    return torch.relu(layer(x)) + layer.weight.sum()


layers = [nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 4, bias=False), nn.Conv1d(4, 4, 1)]


def exercise(fn):
    x = torch.randn(4, 4)
    for layer in layers:
        fn(layer, x)
