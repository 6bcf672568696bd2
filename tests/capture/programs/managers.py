"""Breaks under no_grad, which can be resumed, and under a context manager of the user's own, which cannot."""

import contextlib

import torch


@contextlib.contextmanager
def scope(name):
    yield name


def guarded(x):
    with torch.no_grad():
        x = x + 1
        print("inside")  # expect: graph-break GB0059 split
        x = x * 2
    with scope("a"):
        x = x.sin()
        print("under a manager")  # expect: graph-break GB0059 rest
        x = x.cos()
    return x


ENTRY = "guarded"


def get_inputs():
    return [torch.randn(3)]
