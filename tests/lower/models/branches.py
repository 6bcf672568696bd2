"""A branch and a loop that are part of the graph."""

import torch
from torch._higher_order_ops import while_loop


def yes(x):
    return (x.sin() + 1) * 2


def no(x):
    return x.cos() - 1


def again(i, x):
    return i < 5


def body(i, x):
    return i + 1, x.exp() * 0.5


class Model(torch.nn.Module):
    def forward(self, x):
        chosen = torch.cond(x.sum() > 0, yes, no, (x,))
        start = torch.zeros((), dtype=torch.long, device=x.device)
        return while_loop(again, body, (start, chosen))[1]


def get_inputs():
    return [torch.randn(8, 8)]
