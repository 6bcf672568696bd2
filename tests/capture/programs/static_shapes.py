"""dynamic=False: each size is compiled anew."""
import torch

COMPILE_KWARGS = {"dynamic": False}


def double(x):  # expect: recompile x2
    return x * 2


ENTRY = "double"


def get_input_sets():
    return [(torch.randn(n),) for n in (3, 4, 5, 4)]
