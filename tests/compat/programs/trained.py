"""A training step through Inductor: forward and backward kernels, a library call, a dropout."""

import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(16, 32)
        self.outer = torch.nn.Linear(32, 16)

    def forward(self, x):
        hidden = torch.nn.functional.gelu(self.inner(x))
        return torch.softmax(self.outer(hidden), dim=-1)


def exercise(fn):
    fn(torch.ones(8, 16)).square().sum().backward()
