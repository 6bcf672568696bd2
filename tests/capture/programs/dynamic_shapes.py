"""dynamic=True: one size stays free, another is pinned by a line, and then varies."""
import torch

COMPILE_KWARGS = {"dynamic": True}
BASIS = torch.eye(4)


def project(x):  # expect: recompile
    y = x * 2
    if y.shape[1] == 4:  # expect: specialized
        y = y @ BASIS
    return y.sum(dim=0)


ENTRY = "project"


def get_input_sets():
    return [(torch.randn(3, 4),), (torch.randn(7, 4),), (torch.randn(5, 6),), (torch.randn(9, 6),)]
