"""An operator of one's own without a shape function: compiling fails with no id."""

import torch

ENTRY = "counted"
BACKEND = "eager"


@torch.library.custom_op("inductoscope_compat::no_shapes", mutates_args=())
def no_shapes(x: torch.Tensor) -> torch.Tensor:
    return x + 1


def counted(x):
    y = x * 2
    return no_shapes(y)


def get_inputs():
    return (torch.ones(4),)
