"""torch.compiler.disable on a helper, recursive and not, with a reason."""

import torch

ENTRY = "run"


@torch.compiler.disable
def opaque(x):
    return x.cumsum(0)


@torch.compiler.disable(recursive=False)
def shallow(x):
    return deeper(x) + 1


def deeper(x):
    return x.cos() * 2


@torch.compiler.disable(reason="needs a lock")
def reasoned(x):
    return x - 1


def run(x):
    y = opaque(x) + 1
    y = shallow(y) * 2
    return reasoned(y)


def get_inputs():
    return [torch.randn(4)]
