"""mark_dynamic, mark_static and maybe_mark_dynamic, each with further sizes."""

import torch

ENTRY = "run"


def run(x, y, z):
    return x.sum() + y.sum() + z.sum() + x.shape[0] * z.shape[0]


def exercise(fn):
    for rows in (4, 6, 8):
        x, y, z = torch.randn(rows, 3), torch.randn(rows, 3), torch.randn(rows, 3)
        torch._dynamo.mark_dynamic(x, 0)
        torch._dynamo.mark_static(y, 0)
        torch._dynamo.maybe_mark_dynamic(z, 0)
        fn(x, y, z)
