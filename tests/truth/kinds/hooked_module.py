"""A module with forward hooks, one of which breaks."""

import torch
from torch import nn

SEEN = []


def watch(module, args, output):
    SEEN.append(output.sum().item())
    return output * 1.0


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.second = nn.Linear(4, 4)
        self.first.register_forward_hook(watch)
        self.second.register_forward_pre_hook(lambda module, args: (args[0] + 1,))

    def forward(self, x):
        return self.second(self.first(x)).relu()


def get_input_sets():
    return [(torch.randn(2, 4),), (torch.randn(2, 4),)]
