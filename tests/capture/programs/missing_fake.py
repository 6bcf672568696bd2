"""An operator without a fake implementation, called by a method of a submodule under no_grad."""
import torch
from torch import nn


@torch.library.custom_op("programs::halve", mutates_args=())
def halve(x: torch.Tensor) -> torch.Tensor:
    return x / 2


class Half(nn.Module):
    def forward(self, x):
        with torch.no_grad():
            return halve(x)  # expect: compile-error


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.halver = Half()

    def forward(self, x):
        return self.halver(x.relu()) + 1


def get_inputs():
    return [torch.randn(3)]
