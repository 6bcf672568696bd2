"""Dataclass, NamedTuple, dict and nested inputs, whose parts change."""

import dataclasses
from typing import NamedTuple

import torch

ENTRY = "run"


@dataclasses.dataclass
class Config:
    scale: float
    name: str = "a"


class Batch(NamedTuple):
    x: torch.Tensor
    mask: torch.Tensor | None


def run(config, batch, extra):
    y = batch.x * config.scale
    if batch.mask is not None:
        y = y.masked_fill(batch.mask, 0.0)
    if config.name == "a":
        y = y + extra["bias"]
    return y


def exercise(fn):
    x = torch.randn(3, 4)
    fn(Config(2.0), Batch(x, None), {"bias": x[0]})
    fn(Config(2.0), Batch(x, x > 0), {"bias": x[0]})
    fn(Config(3.0, "b"), Batch(x, x > 0), {"bias": x[0], "more": 1})
