"""A decorator of the user's own between the caller and the function that breaks."""

import functools

import torch


def traced(fn):
    @functools.wraps(fn)  # expect: recompile
    def wrapper(*args, **kwargs):
        out = fn(*args, **kwargs)
        print(fn.__name__)  # expect: graph-break GB0059 split x4
        return out

    return wrapper


@traced
def square(x):
    return x * x


def entry(x):  # expect: recompile
    y = square(x)  # expect: recompile
    return y.sum()


ENTRY = "entry"


def get_input_sets():
    return [(torch.randn(3),), (torch.randn(5),)]
