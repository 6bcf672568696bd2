"""Stances: eager on recompile, then a forced eager call, then a reset."""

import torch

ENTRY = "run"


def run(x):
    print("x")
    return x + 1


def exercise(fn):
    fn(torch.randn(3))
    with torch.compiler.set_stance("eager_on_recompile"):
        fn(torch.randn(3, 3))
    with torch.compiler.set_stance("force_eager"):
        fn(torch.randn(3, 3, 3))
    torch.compiler.reset()
    fn(torch.randn(3))
