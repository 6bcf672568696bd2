"""Tensors that do not move with their module, because it holds them as plain attributes.

Knows nothing of devices but that a tensor on the CPU was left there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import torch

_NAMED = 3
"""So many tensors are named; they tend to be one kind, repeated in each layer."""


def note(modules: Iterable[torch.nn.Module]) -> str | None:
    """A sentence about the tensors that stayed on the CPU when `modules` moved; None where there are none.

    One without dimensions may be used together with tensors on any device, so it is left out.
    """
    names = [f"`{name}`" for module in modules for name in _left(module)]
    if not names:
        return None
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    one = len(names) == 1
    return (
        f"{', '.join(names[:_NAMED])}{more} {'is a tensor' if one else 'are tensors'} but no "
        f"{'parameter or buffer' if one else 'parameters or buffers'} of the model, so moving it to the GPU leaves "
        f"{'it' if one else 'them'} on the CPU. register_buffer() makes {'it' if one else 'them'} move along."
    )


def _left(module: torch.nn.Module) -> Iterator[str]:
    for owner, part in module.named_modules():
        for name, value in vars(part).items():
            if isinstance(value, torch.Tensor) and value.device.type == "cpu" and value.dim() > 0:
                yield f"{owner}.{name}" if owner else name
