"""A branch of torch.cond that Dynamo cannot trace."""

import torch

ENTRY = "run"


def yes(x):
    print("yes")
    return x.sin()


def no(x):
    return x.cos()


def run(x):
    x = x * 2
    return torch.cond(x.sum() > 0, yes, no, (x,)) + 1


def get_inputs():
    return [torch.randn(4)]
