"""The recompile limit under fullgraph=True, which is an error."""

import torch
from torch import nn

COMPILE_KWARGS = {"fullgraph": True}
DYNAMO_CONFIG = {"recompile_limit": 2}


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.step = 0

    def forward(self, x):  # expect: compile-error; recompile-limit
        self.step += 1  # expect: recompile x2
        return x * self.step


def get_input_sets():
    return [(torch.randn(3),) for _ in range(5)]
