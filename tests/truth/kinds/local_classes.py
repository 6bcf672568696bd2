"""Objects made inside, enums, properties, __getattr__, super() chains and class variables that change."""

import enum

import torch
from torch import nn


class Kind(enum.Enum):
    A = 1
    B = 2


class Base(nn.Module):
    gain = 1.0

    def forward(self, x):
        return x * self.gain


class Model(Base):
    def __init__(self):
        super().__init__()
        self.kind = Kind.A

    @property
    def shift(self):
        return 1 if self.kind is Kind.A else 2

    def __getattr__(self, name):
        if name == "virtual":
            return 5
        return super().__getattr__(name)

    def forward(self, x):
        return super().forward(x) + self.shift * self.virtual


def exercise(fn):
    model = fn._orig_mod
    fn(torch.randn(3))
    model.kind = Kind.B
    fn(torch.randn(3))
    Base.gain = 2.0
    fn(torch.randn(3))
