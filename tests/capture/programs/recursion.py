"""A function that calls itself."""
import torch


def settle(x, weight, steps):
    x = torch.tanh(x @ weight) + x * 0.5
    x = x - x.mean()
    if steps == 1:
        return x
    return settle(  # expect: large-graph x39
        x,
        weight,
        steps - 1,
    )


def settle_all(x, weight):
    return settle(x, weight, 40).sum()


ENTRY = "settle_all"


def get_inputs():
    return [torch.randn(3, 3), torch.randn(3, 3)]
