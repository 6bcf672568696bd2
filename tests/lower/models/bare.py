"""Modules of torch alone, with no code of the user in between."""

import torch
from torch import nn


def Model():
    return nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.LayerNorm(16))


def get_inputs():
    return [torch.randn(4, 16)]
