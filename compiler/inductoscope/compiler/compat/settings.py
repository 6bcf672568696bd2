"""Dynamo's settings, `torch._dynamo.config`: documented, but under a private name; so in torch 2.11 to 2.15."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch._dynamo import config


def compiling_is_off() -> bool:
    """Whether the environment or the program has turned `torch.compile` off."""
    return bool(config.disable)


def set_dynamo_config(values: Mapping[str, Any]) -> None:
    """Set each named value.

    Raises `AttributeError` with the name of one that does not exist, `TypeError` for a value of another sort than the
    present one, which torch would only stumble over while it compiles.
    """
    for name, value in values.items():
        if not isinstance(name, str) or not hasattr(config, name):
            raise AttributeError(name)
        now = getattr(config, name)
        if isinstance(now, bool | int | float) and not isinstance(value, bool | int | float | None):
            raise TypeError(f"{name} to {value!r}, which is no number or truth value")
        setattr(config, name, value)
