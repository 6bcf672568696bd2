"""Guards of a nested object, a list of numbers, an enum, a type, None, and a device-free dtype."""
import enum

import torch


class Mode(enum.Enum):
    FAST = 1
    SAFE = 2


class Inner:
    def __init__(self):
        self.factors = [1, 2]


class Outer:
    def __init__(self):
        self.inner = Inner()


def mix(x, outer, mode, bias):  # expect: recompile; recompile
    y = x * outer.inner.factors[1]  # expect: recompile
    if mode is Mode.SAFE:  # expect: recompile
        y = y.clamp(0, 1)
    if bias is not None:  # expect: recompile
        y = y + bias
    return y


ENTRY = "mix"


def exercise(fn):
    x, outer = torch.randn(4), Outer()
    fn(x, outer, Mode.FAST, None)
    fn(x, outer, Mode.SAFE, None)
    outer.inner.factors[1] = 5
    fn(x, outer, Mode.SAFE, None)
    fn(x, outer, Mode.SAFE, 2.5)
    fn(x.double(), outer, Mode.SAFE, 2.5)
    fn(x[None], outer, Mode.SAFE, 2.5)
