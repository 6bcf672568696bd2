"""Two reads of a tensor and a print on one line: three causes, of which two are of one type."""

import torch


def total(a, b):
    y = a + b
    print(y.sum().item(), y.max().item())  # expect: graph-break GB0059 split; graph-break GB0124 split; graph-break GB0124 split
    return y * 2


ENTRY = "total"


def get_inputs():
    return [torch.randn(3), torch.randn(3)]
