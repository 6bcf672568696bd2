"""A break inside a checkpointed block."""
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def block(self, x):
        y = self.lin(x)
        print(y.shape)  # expect: graph-break GB0059 split
        return y.relu()

    def forward(self, x):
        x = x * 2
        return checkpoint(self.block, x, use_reentrant=False).sum()


def get_inputs():
    return [torch.randn(2, 4)]
