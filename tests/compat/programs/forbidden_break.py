"""A break where `fullgraph=True` allows none: it reaches the program as an exception."""

import torch

ENTRY = "scaled"
BACKEND = "eager"
COMPILE_KWARGS = {"fullgraph": True}


def scaled(x):
    y = x * 2
    print("scaled")
    return y + 1


def get_inputs():
    return (torch.ones(4),)
