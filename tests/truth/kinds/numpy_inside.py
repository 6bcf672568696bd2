"""NumPy inside: traced, and one function that it cannot trace."""

import numpy as np
import torch

ENTRY = "run"


def run(x):
    a = np.asarray(x)
    b = np.sqrt(a * a) + np.arange(4)
    c = np.char.upper("ab")
    return torch.from_numpy(b) + len(str(c))


def get_inputs():
    return [torch.rand(4, dtype=torch.float64)]
