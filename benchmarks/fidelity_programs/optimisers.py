"""Optimiser steps under torch.compile: foreach kernels over lists of parameters."""

from collections.abc import Callable
from typing import Any

import torch

from fidelity_programs.kit import Prepared, large, whole

_SHAPES = ((1024, 1024), (1024,), (4096, 512))


def _step(make: Callable[..., torch.optim.Optimizer], **options: Any) -> Prepared:
    parameters = [torch.nn.Parameter(large(*shape)) for shape in _SHAPES]
    for parameter in parameters:
        parameter.grad = large(*parameter.shape)
    optimiser = make(parameters, **options)

    def run() -> list[float]:
        optimiser.step()  # its state exists before the compiled step, as in a real loop
        torch.compile(lambda: optimiser.step())()
        return []

    return whole(run)


def adamw() -> Prepared:
    return _step(torch.optim.AdamW, lr=1e-3)


def adamw_fused_off_for_each_off() -> Prepared:
    return _step(torch.optim.AdamW, lr=1e-3, foreach=False)


def adam_tensor_rate() -> Prepared:
    return _step(torch.optim.Adam, lr=torch.tensor(1e-3).cuda(), capturable=True)


def sgd_momentum() -> Prepared:
    return _step(torch.optim.SGD, lr=1e-2, momentum=0.9, nesterov=True)


def rmsprop() -> Prepared:
    return _step(torch.optim.RMSprop, lr=1e-3)


def adagrad() -> Prepared:
    return _step(torch.optim.Adagrad, lr=1e-2)


def clipped_gradients() -> Prepared:
    parameters = [torch.nn.Parameter(large(*shape)) for shape in _SHAPES]
    for parameter in parameters:
        parameter.grad = large(*parameter.shape)

    def run() -> list[float]:
        torch.compile(lambda: torch.nn.utils.clip_grad_norm_(parameters, 1.0))()
        return []

    return whole(run)


def moving_average() -> Prepared:
    own, average = ([large(*shape) for shape in _SHAPES] for _ in range(2))

    def run() -> list[float]:
        torch.compile(lambda a, b: torch._foreach_lerp_(a, b, 0.01))(average, own)
        return []

    return whole(run)
