"""A layer that fuses well, and a helper that prints while it is compiled."""

import torch
from torch import nn
from torch.nn import functional as F


def report(scores):
    print("scores", scores.shape)
    return scores


class Model(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.expand = nn.Linear(width, 4 * width)

    def forward(self, x):
        hidden = self.expand(x)
        active = F.gelu(hidden) * 2.0 + 1.0
        active = report(active)
        return torch.softmax(active, dim=-1)


def get_inputs():
    return [torch.randn(8, 64)]


def get_init_inputs():
    return []
