"""A method of a submodule that another file defines."""

import torch
from submodule_elsewhere_lib import Stack
from torch import nn


class Model(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.stack = Stack(dim)

    def forward(self, x):
        return self.stack(x).sum()


def get_init_inputs():
    return [4]


def get_inputs():
    return [torch.randn(2, 4)]
