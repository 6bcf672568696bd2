"""A size that is marked as dynamic and then compared with a number: compiling fails."""

import torch

ENTRY = "fitted"
BACKEND = "eager"


def fitted(x):
    if x.shape[0] == 4:
        return x * 2
    return x + 1


def exercise(fn):
    x = torch.ones(4, 3)
    torch._dynamo.mark_dynamic(x, 0)
    fn(x)
