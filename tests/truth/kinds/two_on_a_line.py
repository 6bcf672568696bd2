"""Breaks of different causes on one line, and one cause that is met many times."""

import torch

ENTRY = "run"


def say(x):
    print("met")
    return x + 1


def run(x):
    a = x.sum().item() + float(str(x.max().tolist())[:1] == "z") + int(x.argmax())
    for _ in range(2):
        pass
    x = say(x)
    x = say(x * a)
    return say(x)


def get_inputs():
    return [torch.randn(5)]
