"""functools.partial, a lambda and an object with __call__ as what is compiled or called."""

import functools

import torch

ENTRY = "target"


class Affine:
    def __init__(self, scale):
        self.scale = scale

    def __call__(self, x):
        return x * self.scale


def body(x, op, y=1):
    return op(x) + y


affine = Affine(3)
target = functools.partial(body, op=lambda value: affine(value).abs(), y=2)


def exercise(fn):
    fn(torch.randn(3))
    fn(torch.randn(3))
    affine.scale = 4
    fn(torch.randn(3))
