"""suppress_errors hides a backend that fails."""
import torch

DYNAMO_CONFIG = {"suppress_errors": True}


def BACKEND(module, inputs):
    raise ValueError("no such target")


def add(x):  # expect: not-compiled
    return x + 1


ENTRY = "add"


def get_inputs():
    return [torch.randn(3)]
