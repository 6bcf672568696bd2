"""A break inside a generator that the compiled function consumes."""

import torch


def halves(x):
    for part in x.chunk(2):
        if part.sum() > 0:  # expect: graph-break GB0170 whole
            yield part
        yield -part


def collect(x):
    total = x.sum()
    for part in halves(x):
        total = total + part.sum()
    return total


ENTRY = "collect"


def get_inputs():
    return [torch.randn(4)]
