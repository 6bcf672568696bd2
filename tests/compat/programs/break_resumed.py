"""A break between two operations: what follows is compiled as a graph of its own."""

import torch

ENTRY = "scaled"
BACKEND = "eager"


def scaled(x):
    y = x * 2
    print("scaled")
    return y + 1


def get_inputs():
    return (torch.ones(4),)
