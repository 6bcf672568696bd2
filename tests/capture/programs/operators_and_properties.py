"""Breaks in a property, an operator, a constructor, a lambda and a partial."""
import functools

import torch


class Scale:
    def __init__(self, value):
        self.value = value
        print("made")  # expect: graph-break GB0059 split

    @property
    def doubled(self):
        print("read")  # expect: graph-break GB0059 whole
        return self.value * 2

    def __rmul__(self, other):
        print("used")
        return other * self.value


def shift(x, by):
    print("shifted")  # expect: graph-break GB0059 split
    return x + by


def apply(x):
    scale = Scale(3)
    x = x * scale.doubled
    x = 2 * scale + x
    x = (lambda t: t + t.max().item())(x)  # expect: graph-break GB0124 split
    return functools.partial(shift, by=1)(x)


ENTRY = "apply"


def get_inputs():
    return [torch.randn(3)]
