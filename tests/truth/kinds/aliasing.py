"""Inputs changed in place, the same tensor twice, outputs that are views."""

import torch

ENTRY = "run"


def run(x, y):
    x.add_(1)
    view = x.view(-1)
    y.mul_(2)
    return view, view[1:], x.t()


def exercise(fn):
    x, y = torch.randn(2, 2), torch.randn(2, 2)
    fn(x, y)
    fn(x, x)
    fn(x[:1], y)
