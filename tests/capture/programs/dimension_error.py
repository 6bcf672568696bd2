"""An operator's own IndexError, which comes up while Dynamo traces."""
import torch


def reduce(x):
    y = x + 1
    return y.sum(dim=5)  # expect: compile-error


ENTRY = "reduce"


def get_inputs():
    return [torch.randn(3)]
