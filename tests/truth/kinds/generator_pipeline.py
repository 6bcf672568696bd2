"""Generators: consumed inside, passed out, with send, and one that breaks."""

import torch

ENTRY = "run"


def halves(x):
    for part in x.chunk(2):
        yield part.relu()


def noisy(x):
    for part in x.chunk(2):
        print("part")
        yield part


def run(x):
    total = sum(half.sum() for half in halves(x))
    first = next(halves(x))
    rest = torch.cat(list(noisy(x)))
    return total + first.sum() + rest.sum()


def get_inputs():
    return [torch.randn(8)]
