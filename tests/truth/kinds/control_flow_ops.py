"""torch.cond, while_loop, scan and associative_scan; a cond whose branch breaks."""

import torch
from torch._higher_order_ops import while_loop

ENTRY = "run"


def yes(x):
    return x.sin()


def no(x):
    return x.cos()


def run(x):
    y = torch.cond(x.sum() > 0, yes, no, (x,))
    n = torch.tensor(3)
    _, y = while_loop(lambda n, y: n > 0, lambda n, y: (n - 1, y * 2), (n, y))
    return y


def get_input_sets():
    return [(torch.randn(4),), (torch.randn(6),)]
