"""The program raises and catches inside of what is compiled: try, except, finally, with a custom exception."""

import torch

ENTRY = "run"


class Refused(ValueError):
    def __init__(self, why):
        super().__init__(why)
        self.why = why


def check(x, n):
    if n > 1:
        raise Refused("too many")
    return x + n


def run(x, n):
    try:
        y = check(x, n)
    except Refused as refused:
        y = x * len(refused.why)
    finally:
        x = x + 1
    return y + x


def get_input_sets():
    return [(torch.randn(3), 1), (torch.randn(3), 2)]
