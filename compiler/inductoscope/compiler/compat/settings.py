"""Dynamo's settings, `torch._dynamo.config`: documented, but under a private name; so in torch 2.11 to 2.15."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch._dynamo import config


def compiling_is_off() -> bool:
    """Whether the environment or the program has turned `torch.compile` off."""
    return bool(config.disable)


def set_dynamo_config(values: Mapping[str, Any]) -> None:
    """Set each named value.  Raises `AttributeError` with the name of one that does not exist."""
    for name, value in values.items():
        if not hasattr(config, name):
            raise AttributeError(name)
        setattr(config, name, value)
