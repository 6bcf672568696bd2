"""Dynamo's settings, `torch._dynamo.config`: documented, but under a private name; so in torch 2.11 to 2.15."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

from torch._dynamo import config
from torch.fx.experimental import _config as shape_config


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


@contextlib.contextmanager
def every_size_symbolic() -> Iterator[None]:
    """For a block, every size is compiled as a symbol of its own, also where two happen to be equal.

    `assume_static_by_default` (2.1 to 2.15) is what `torch.compile(dynamic=True)` turns off; `use_duck_shape` (2.5 to
    2.15) gives equal sizes one symbol.
    """
    with config.patch(assume_static_by_default=False), shape_config.patch(use_duck_shape=False):
        yield
