"""Two breaks in a row; a shape that only the third part uses."""

import torch


def steps(x, extra):
    x = x.sin()
    torch._dynamo.graph_break()  # expect: graph-break GB0025 split
    x = x.cos()
    torch._dynamo.graph_break()  # expect: graph-break GB0025 split; recompile
    return x.sum() + extra.sum()


ENTRY = "steps"


def get_input_sets():
    x = torch.randn(3)
    return [(x, torch.randn(4)), (x, torch.randn(6))]
