"""A backend that raises."""

import torch


def BACKEND(module, inputs):
    raise ValueError("no such target")


def add(x):  # expect: compile-error
    return x + 1


ENTRY = "add"


def get_inputs():
    return [torch.randn(3)]
