"""Two helpers reach the recompile limit."""

import torch

ENTRY = "run"
DYNAMO_CONFIG = {"recompile_limit": 2}


@torch.compiler.disable(recursive=False)
def run(x, n):
    return one(x, n) + two(x, -n)


@torch.compile(backend="eager", dynamic=False)
def one(x, n):
    return x * n


@torch.compile(backend="eager", dynamic=False)
def two(x, n):
    return x + n


def exercise(fn):
    for n in range(5):
        run(torch.randn(3), n)
