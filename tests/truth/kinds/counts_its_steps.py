"""A module that counts its calls: its submodules are reached through its dictionary, and each call compiles it anew."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.steps = 0

    def forward(self, x):
        self.steps += 1
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return self.first(x).float().mean()


def get_input_sets():
    return [[torch.randn(2, 4)] for _ in range(3)]
