"""Four graphs in training, the last of them with a size that becomes dynamic."""

import torch
from torch import nn

WIDTH = 16


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(WIDTH, WIDTH)
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = torch.relu(self.first(x))
        torch._dynamo.graph_break()
        hidden = self.norm(hidden) + x
        hidden = hidden * 2.0
        torch._dynamo.graph_break()
        return torch.softmax(hidden, -1).sum(0)


def get_input_sets() -> list[list[torch.Tensor]]:
    return [[torch.randn(8, WIDTH)], [torch.randn(12, WIDTH)]]
