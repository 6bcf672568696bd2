"""Guards of each common kind, and dimensions that stay open, are bounded, or are pinned."""

import torch
from torch import nn

SCALE = 3


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(8, 8)])
        self.gain = 3
        self.options = {"bias": 1}

    def forward(self, x, index, open_, flag=True):
        y = self.layers[0](x) * self.gain  # <linear>
        if x.shape[0] % 4 == 0:  # <multiple>
            y = y + self.options["bias"] * SCALE  # <options>
        if x.shape[0] < 100 and flag:  # <bounded>
            y = y - 1
        if index.shape[0] == 6:  # <pinned>
            y = y + 1
        return y.sum() + open_.sum()


def get_input_sets():
    index = torch.randn(6, 2)
    return [(torch.randn(12, 8), torch.randn(7, 2), torch.randn(3)), (torch.randn(24, 8), index, torch.randn(5))]
