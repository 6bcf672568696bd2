"""fullgraph=True without a break, and a data-dependent branch under it in a second function."""

import torch

ENTRY = "run"
COMPILE_KWARGS = {"fullgraph": True}


def run(x, flag):
    y = x.sin()
    if flag:
        y = y + 1
    if y.sum() > 0:
        return y
    return -y


def get_input_sets():
    return [(torch.randn(4), True), (torch.randn(5), False)]
