"""Breaks inside the standard library, from two lines, one of them in a loop."""
import statistics
import uuid

import torch


def tag(x):
    name = uuid.uuid4()  # expect: graph-break GB0007 split
    y = x + len(str(name))
    for _ in range(2):
        y = y + uuid.getnode()  # expect: graph-break GB0007 whole
    return y * statistics.median([3, 1, 2])


ENTRY = "tag"


def get_inputs():
    return [torch.randn(3)]
