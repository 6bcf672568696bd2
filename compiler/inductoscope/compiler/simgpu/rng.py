"""Random numbers of the simulated device: a seed and an offset, as on a card.

What is drawn differs from a card's numbers, but obeys the same rules: seeding again gives the same numbers again,
drawing on the device leaves the CPU's generator alone, and a value does not depend on when somebody looks at it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._pytree import tree_leaves, tree_map

_CpuGenerator: Any = torch.Generator  # the C type; torch.Generator itself is replaced later
_DEFAULT_SEED = 67280421310721  # c10::detail::default_rng_seed_val
_STATE = struct.Struct("<QQ")  # seed and offset, the layout of a CUDA generator's state


class DeviceGenerator(_CpuGenerator):
    """A generator that says it is on the device.  The C++ side sees a CPU generator, which is never drawn from."""

    _seed: int
    _offset: int

    def __new__(cls) -> DeviceGenerator:
        """A generator with the default seed."""
        self: DeviceGenerator = _CpuGenerator.__new__(cls, "cpu")
        self._seed, self._offset = _DEFAULT_SEED, 0
        return self

    device = property(lambda self: torch.device("cuda", 0))

    def draw(self) -> int:
        """A seed for one operation; each call gives another."""
        self._offset += 4
        return (self._seed * 1_000_003 + self._offset * 7_919) % (1 << 63)

    def manual_seed(self, seed: int) -> DeviceGenerator:
        """As torch.Generator.manual_seed."""
        self._seed, self._offset = int(seed) % (1 << 64), 0
        return self

    def seed(self) -> int:
        """As torch.Generator.seed."""
        self.manual_seed(_CpuGenerator("cpu").seed())
        return self._seed

    def initial_seed(self) -> int:
        """As torch.Generator.initial_seed."""
        return self._seed

    def get_offset(self) -> int:
        """Position in the sequence."""
        return self._offset

    def set_offset(self, offset: int) -> None:
        """Set the position in the sequence."""
        self._offset = int(offset)

    def get_state(self) -> torch.Tensor:
        """Seed and offset as 16 bytes on the CPU."""
        return torch.tensor(list(_STATE.pack(self._seed, self._offset)), dtype=torch.uint8, device="cpu")

    def set_state(self, state: torch.Tensor) -> DeviceGenerator:
        """Take over what `get_state` gave."""
        self._seed, self._offset = _STATE.unpack(bytes(state.tolist()))
        return self

    def clone_state(self) -> DeviceGenerator:
        """A generator of its own that goes on from here."""
        return DeviceGenerator().graphsafe_set_state(self)  # AOTAutograd asks under fake tensors, which have no bytes

    def graphsafe_get_state(self) -> DeviceGenerator:
        """As torch.Generator.graphsafe_get_state: the state by reference."""
        return self

    def graphsafe_set_state(self, other: DeviceGenerator) -> DeviceGenerator:
        """Take over the state of another generator."""
        self._seed, self._offset = other._seed, other._offset
        return self


def is_random(func: Any) -> bool:
    """Whether the operator draws random numbers."""
    return torch.Tag.nondeterministic_seeded in func.tags


def seeded(run: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Callable[..., Any]:
    """`run` with the random numbers that belong to this call, whenever it is made."""
    given = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, DeviceGenerator)]
    generator = given[0] if given else torch.cuda.default_generators[0]
    seed = generator.draw()

    def drawing(*run_args: Any, **run_kwargs: Any) -> Any:
        own = _CpuGenerator("cpu").manual_seed(seed)
        run_args, run_kwargs = tree_map(
            lambda leaf: own if isinstance(leaf, DeviceGenerator) else leaf, (run_args, run_kwargs)
        )
        before = torch.default_generator.get_state()
        torch.default_generator.manual_seed(seed)
        try:
            return run(*run_args, **run_kwargs)
        finally:
            torch.default_generator.set_state(before)

    return drawing
