"""A dimension marked dynamic, and a helper that branches on it."""
import torch


def wide(x):
    return x.shape[0] == 6


def run(x):
    y = x.relu()
    if wide(y):  # expect: compile-error
        return y + 1
    return y


ENTRY = "run"


def exercise(fn):
    x = torch.randn(6, 10)
    torch._dynamo.mark_dynamic(x, 0)
    fn(x)
