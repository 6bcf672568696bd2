"""error_on_graph_break in part of a function."""
import torch


def check(x):
    print("checked")  # expect: graph-break GB0059
    return x


def run(x):
    print("before")  # expect: graph-break GB0059 split
    x = x + 1
    with torch._dynamo.error_on_graph_break(True):
        x = check(x)
    return x


ENTRY = "run"


def get_inputs():
    return [torch.randn(3)]
