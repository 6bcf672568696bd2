"""error_on_graph_break as a context: a break inside is an error, one outside is not."""

import torch

ENTRY = "run"


def run(x):
    print("allowed")
    x = x + 1
    with torch._dynamo.error_on_graph_break(True):
        x = x * 2
        print("forbidden")
    return x


def get_inputs():
    return [torch.randn(4)]
