"""torch.cond with a branch that prints."""
import torch


def yes(x):
    print("yes")  # expect: compile-error
    return x.sin()


def no(x):
    return x.cos()


def choose(x):
    y = x + 1
    return torch.cond(y.sum() > 0, yes, no, (y,))


ENTRY = "choose"


def get_inputs():
    return [torch.randn(3)]
