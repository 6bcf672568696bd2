"""Sizes, a layout and a dtype change: recompilations by guards on a tensor, several versions old."""

import torch

ENTRY = "doubled"
BACKEND = "eager"


def doubled(x):
    return x * 2


def get_input_sets():
    return [
        (torch.ones(4, 6),),
        (torch.ones(5, 6),),
        (torch.ones(5, 6, dtype=torch.float64),),
        (torch.ones(6, 5).t(),),
        (torch.ones(5, 6, requires_grad=True),),
    ]
