"""Writing under a mask: Dynamo captures it, but its backward needs sizes that depend on data.  Other calls compile."""

import torch
from torch import nn

BACKEND = "aot_eager"


class Masked(nn.Module):
    def __init__(self):
        super().__init__()
        self.mark = nn.Parameter(torch.zeros(4))

    def forward(self, x, mask):
        x = x.relu()
        x[mask] = self.mark  # expect: graph-break GB0219 whole x3
        return x.sin()


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.masked = Masked()
        self.last = nn.Linear(4, 4)

    def forward(self, x, mask):
        return self.last(self.masked(x, mask))


def get_inputs():
    return [torch.randn(3, 4), torch.tensor([True, False, True])]
