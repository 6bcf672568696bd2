"""Functions of one or two vectors; the line of each that bounds a size is marked with the name of the function."""

import torch
from torch import nn


def branch(x):
    if x.shape[0] > 10:  # <branch>
        return x * 2
    return x + 1


def quads(x):
    return x.reshape(-1, 4).sum(1)  # <quads>


def halves(x):
    first, second = x.chunk(2)
    return first + second  # <halves>


def asserted(x):
    assert x.shape[0] % 8 == 0  # <asserted>
    return x.sum()


def table(x):
    positions = torch.ones(64)
    return x + positions[: x.shape[0]]  # <table>


def not_one(x):
    if x.shape[0] * 2 < 50 and x.numel() != 7:  # <not_one>
        return x.sin()
    return x.cos()


def third(x):
    rows = x.shape[0] // 3
    if rows > 2:  # <third>
        return x[:rows] * 2
    return x[:1]


def convolved(x):
    return nn.functional.conv1d(x[None, None], torch.ones(1, 1, 5), stride=2).sum()  # <convolved>


def one_of(x):
    if x.shape[0] in (12, 24):  # <one_of>
        return x.sum()
    return x * 3


def exact(x):
    if x.shape[0] == 24:  # <exact>
        return x + 1
    return x - 1


def even(x):
    if x.shape[0] % 2 == 1:  # <even>
        return x + 1
    return x.view(-1, 2).sum(0)


def free(x):
    return torch.zeros(max(x.shape[0], 16)).sum() + x.sum()


def alike(x, y):
    return x + y  # <alike>


def twice(x, y):
    return torch.cat([x, x]) * y  # <twice>


def longer(x, y):
    if x.shape[0] > y.shape[0]:  # <longer>
        return x.sum() + y.sum()
    return x.sum() - y.sum()


class Buffered(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("scale", torch.ones(24))

    def forward(self, x):
        return x * self.scale  # <buffered>


buffered = Buffered()
