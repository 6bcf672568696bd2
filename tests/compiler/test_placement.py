"""How arguments get to the device; the device here is torch's `meta`."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch

from inductoscope.compiler.placement import Placement
from inductoscope.protocol.devices import parse


class Meta:
    """Moves to `meta` in place of a simulated GPU."""

    def move(self, obj):
        return obj.to("meta")

    def syncs(self):
        return ()


PLACEMENT = Placement(parse("sim:H200"), Meta())


@dataclass
class Cache:
    keys: list[torch.Tensor]
    length: int = 3


@dataclass(frozen=True)
class Frozen:
    values: torch.Tensor
    later: torch.Tensor = field(init=False)


def test_tensors_inside_a_dataclass_move_and_calls_go_on_sharing_it():
    cache = Cache([torch.zeros(2)])
    first, second = (PLACEMENT.move((torch.zeros(1), cache)) for _ in range(2))
    assert first[1] is second[1]
    assert first[1].keys[0].is_meta
    assert first[1].length == 3


def test_a_frozen_dataclass_moves_too_and_may_lack_fields():
    moved = PLACEMENT.move(Frozen(torch.zeros(2)))
    assert moved.values.is_meta
    assert not hasattr(moved, "later")
