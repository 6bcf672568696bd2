"""A loop in a helper, called in a loop of a few rounds; most of the graph is the inner one's."""
import torch


def settle(x, weight):
    step = 0
    while step < 40:  # expect: large-graph x80
        x = torch.tanh(x @ weight) + x * 0.5
        x = x - x.mean()
        step += 1
    return x


def run(x, weight):
    for _ in range(2):
        x = settle(x, weight)
    return [x * t for t in range(3)]


ENTRY = "run"


def get_inputs():
    return [torch.randn(2, 3), torch.randn(3, 3)]
