"""An inference through Inductor: a reduction, a pattern of attention, a matrix product."""

import torch

ENTRY = "attended"


def attended(q, k, v):
    scores = torch.softmax(q @ k.transpose(-1, -2), dim=-1)
    return torch.nn.functional.layer_norm(scores @ v, (16,))


def get_inputs():
    return tuple(torch.ones(2, 8, 16) for _ in range(3))
