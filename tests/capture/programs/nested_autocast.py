"""autocast inside another context manager, in a helper."""
import torch

BACKEND = "inductor"


def project(x, weight):
    with torch.no_grad():
        with torch.autocast("cpu", dtype=torch.bfloat16):  # expect: cache-bypass
            y = x @ weight
        return y * 2


def run(x, weight):
    return project(x.relu(), weight).float()


ENTRY = "run"


def get_inputs():
    return [torch.randn(4, 4), torch.randn(4, 4)]
