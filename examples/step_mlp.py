"""An MLP that counts its own calls.

Its strength grows with an int attribute that `forward` itself changes.  Dynamo takes such a number for a constant and
guards on it, so each call compiles everything again; at the recompile limit (8) the rest runs eagerly.
"""

import torch
from torch import nn


class Model(nn.Module):
    """Two linear layers, faded in over the first calls."""

    def __init__(self, width=128, warmup=100):
        super().__init__()
        self.warmup = warmup
        self.calls = 0
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x):
        self.calls += 1
        strength = min(1.0, self.calls / self.warmup)  # a new number on each call
        return x + strength * self.down(torch.relu(self.up(x)))


def get_input_sets():
    return [(torch.randn(32, 128),) for _ in range(4)]


if __name__ == "__main__":
    torch.manual_seed(0)
    model = torch.compile(Model())
    for step, (x,) in enumerate(get_input_sets(), start=1):
        y = model(x)
        print(f"call {step}: the block changed its input by {(y - x).abs().mean():.4f}")
