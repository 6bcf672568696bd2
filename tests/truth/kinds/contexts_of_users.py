"""A user's decorator, contextmanager and class-based context around code, with a break inside one of them."""

import contextlib
import functools

import torch

ENTRY = "run"
LOG = []


def traced(function):
    @functools.wraps(function)
    def wrapper(*args):
        LOG.append(function.__name__)
        return function(*args) * 1

    return wrapper


@contextlib.contextmanager
def scope(name):
    LOG.append(name)
    yield
    LOG.pop()


class Scaled:
    def __enter__(self):
        return 2

    def __exit__(self, *_):
        return False


@traced
def run(x):
    with scope("a"):
        y = x + 1
    with Scaled() as factor:
        y = y * factor
        print("inside")
    return y.relu()


def get_inputs():
    return [torch.randn(4)]
