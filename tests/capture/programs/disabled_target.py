"""The compiled function only calls one that compiling is disabled for."""

import torch


@torch.compiler.disable
def plain(x):
    return x + 1


def entry(x):
    return plain(x)  # expect: graph-break GB0098 split


ENTRY = "entry"


def get_inputs():
    return [torch.randn(3)]
