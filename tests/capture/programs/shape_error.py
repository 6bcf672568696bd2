"""A product of sizes that do not fit, in a helper."""

import torch


def project(x, weight):
    return x @ weight  # expect: compile-error


def run(x, weight):
    y = x.relu()
    return project(y, weight) + 1


ENTRY = "run"


def get_inputs():
    return [torch.randn(3, 4), torch.randn(5, 6)]
