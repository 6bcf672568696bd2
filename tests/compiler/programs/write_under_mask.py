"""Dynamo captures a write under a mask; Inductor finds out that its backward has sizes that depend on data."""

import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.mark = torch.nn.Parameter(torch.zeros(8))

    def forward(self, x, mask):
        y = x * 2
        y[mask] = self.mark
        return y.sin()


def get_inputs():
    return [torch.randn(4, 8), torch.tensor([True, False, True, False])]
