"""autocast as a decorator of a helper, under a compiled function without a backend of its own."""
import torch

BACKEND = "inductor"


@torch.autocast("cpu", dtype=torch.bfloat16)  # expect: cache-bypass
def project(x, weight):
    return x @ weight


def run(x, weight):
    y = x.relu()
    y = project(y, weight)
    return y.float() + 1


ENTRY = "run"


def get_inputs():
    return [torch.randn(4, 4), torch.randn(4, 4)]
