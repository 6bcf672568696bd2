"""Attributes that only library code reads: a probability, and the training flag of one submodule."""
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        y = x + 1
        return self.drop(y)  # expect: recompile; recompile; specialized


def exercise(fn):
    x = torch.randn(3)
    fn(x)
    fn.drop.p = 0.25
    fn(x)
    fn.drop.eval()
    fn(x)
