"""A custom operator with a fake, one without, called twice."""

import torch

ENTRY = "run"


@torch.library.custom_op("truth_kinds::scale", mutates_args=())
def scale(x: torch.Tensor, by: float) -> torch.Tensor:
    return x * by


@scale.register_fake
def _(x, by):
    return torch.empty_like(x)


@torch.library.custom_op("truth_kinds::bump", mutates_args={"x"})
def bump(x: torch.Tensor) -> None:
    x.add_(1)


def run(x):
    y = scale(x, 2.0)
    bump(y)
    return scale(y, 3.0)


def get_inputs():
    return [torch.randn(4)]
