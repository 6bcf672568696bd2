"""What the programs are made of: what to call and how, and inputs that are the same on every machine."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

BF16, F16, F32 = torch.bfloat16, torch.float16, torch.float32


class Use(enum.Enum):
    """How a program is run."""

    INFERENCE = "inference"  # compiled and called without gradients
    TRAINING = "training"  # compiled and called, then its sum goes backward
    WHOLE = "whole"  # a program that calls torch.compile itself


@dataclass(frozen=True)
class Prepared:
    """A callable with its arguments; a whole program returns the numbers that it looked at."""

    run: Callable[..., Any]
    args: tuple[Any, ...]
    use: Use
    options: dict[str, Any] = field(default_factory=dict)  # of torch.compile


def inference(run: Callable[..., Any], *args: Any, **options: Any) -> Prepared:
    """Compile `run` and call it without gradients."""
    if isinstance(run, nn.Module):
        run.eval()
    return Prepared(run, args, Use.INFERENCE, options)


def training(run: Callable[..., Any], *args: Any, **options: Any) -> Prepared:
    """Compile `run`, call it and send the sum of its result backward."""
    return Prepared(run, args, Use.TRAINING, options)


def whole(run: Callable[..., Any], *args: Any) -> Prepared:
    """Call `run`, which compiles what it wants to and returns the numbers that it looked at."""
    return Prepared(run, args, Use.WHOLE)


def randn(*sizes: int, dtype: torch.dtype = F32) -> torch.Tensor:
    """Normal numbers, drawn on the CPU so that every machine has the same."""
    return torch.randn(*sizes).to(dtype).cuda()


def large(*sizes: int, dtype: torch.dtype = F32) -> torch.Tensor:
    """Normal numbers drawn on the device: for programs that never look at one."""
    return torch.randn(*sizes, device="cuda", dtype=dtype)


def integers(high: int, *sizes: int) -> torch.Tensor:
    """Whole numbers below `high`, the same on every machine."""
    return torch.randint(high, sizes).cuda()


def on_gpu(module: nn.Module, dtype: torch.dtype = F32) -> nn.Module:
    """`module` on the device in `dtype`."""
    return module.to(dtype).cuda()
