"""What torch decided by timing on a card, as data: so that a simulation of that card decides alike.

Every decision is kept under what torch itself decides by: the key of a matmul's padding, the operator and the layouts
of its inputs for a choice between kernels, the text of a kernel for its configuration.  Times are microseconds.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class RecordedPadding:
    """Whether torch padded the operands of an unaligned matmul, and the times of both forms.

    `key` is torch's own, in which sizes may be symbols; `sizes` are batch, m, k and n of the example.
    """

    key: str
    sizes: tuple[int, int, int, int]
    pads: bool
    plain_us: float | None = None
    padded_us: float | None = None


@dataclass(frozen=True)
class TimedWay:
    """A way to compute an operator; `us` is null where it could not be timed."""

    name: str
    us: float | None = None


@dataclass(frozen=True)
class RecordedChoice:
    """What autotuning chose for `operator` on inputs with the layouts `inputs`; `ways` has all, `winner` names one."""

    operator: str
    inputs: str
    ways: tuple[TimedWay, ...]
    winner: str


@dataclass(frozen=True)
class TimedConfig:
    """A configuration of a Triton kernel: block sizes, warps and stages."""

    blocks: dict[str, int]
    num_warps: int
    num_stages: int
    us: float | None = None

    def is_same(self, blocks: dict[str, int], num_warps: int, num_stages: int) -> bool:
        """Whether it is the configuration with these settings."""
        return (self.blocks, self.num_warps, self.num_stages) == (blocks, num_warps, num_stages)


@dataclass(frozen=True)
class RecordedKernel:
    """The configurations of the kernel whose text has the hash `text`, and the one that is launched.

    The winner may be none of `timed`: a search by coordinate descent goes on from the best of these.
    """

    text: str
    timed: tuple[TimedConfig, ...]
    winner: TimedConfig


@dataclass(frozen=True)
class Measured:
    """A rate that was measured on the card, and how."""

    what: str
    value: float
    unit: str
    method: str


@dataclass(frozen=True)
class Recording:
    """Everything recorded on one card with one torch."""

    card: str
    torch: str
    triton: str | None = None
    cuda: str | None = None
    driver: str | None = None
    measured: tuple[Measured, ...] = ()
    paddings: tuple[RecordedPadding, ...] = ()
    choices: tuple[RecordedChoice, ...] = ()
    kernels: tuple[RecordedKernel, ...] = ()
