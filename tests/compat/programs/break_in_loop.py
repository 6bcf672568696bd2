"""A break inside of a loop: nothing of the function is compiled."""

import torch

ENTRY = "summed"
BACKEND = "eager"


def summed(x):
    total = x.sin()
    for _ in range(2):
        total = total + x
        print("once more")
    return total


def get_inputs():
    return (torch.ones(4),)
