"""float64 from NumPy in a helper, complex numbers from a buffer, and what is no leak."""
import numpy as np
import torch
from torch import nn


def window(x):
    ramp = torch.from_numpy(np.linspace(0.0, 1.0, 4))
    return x * ramp  # expect: dtype-note


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("phase", torch.polar(torch.ones(4), torch.arange(4.0)))

    def forward(self, x):
        wide = x.double() * 2
        half = x * torch.tensor(0.5, dtype=torch.float64)
        y = window(half + 1)
        y = y + x
        z = x * self.phase  # expect: dtype-note
        return wide, y, z.real


def get_inputs():
    return [torch.randn(2, 4)]
