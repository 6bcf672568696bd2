"""Recorded decisions: what torch decides by timing while a program is compiled and run on the card of this machine."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping
from typing import Any

import torch

from inductoscope.compiler.card.replay import identity
from inductoscope.compiler.compat import autotuning
from inductoscope.compiler.compat import card as compat
from inductoscope.compiler.compat.card import Configuration, Sizes
from inductoscope.protocol.recording import (
    RecordedChoice,
    RecordedKernel,
    RecordedPadding,
    Recording,
    TimedConfig,
    TimedWay,
)


class Recorder:
    """Collects the decisions of what runs inside of `recording()`; an equal question keeps its last answer."""

    def __init__(self) -> None:
        self._paddings: dict[tuple[str, Sizes], RecordedPadding] = {}
        self._choices: dict[tuple[str, str], RecordedChoice] = {}
        self._tuners: dict[int, tuple[Any, Mapping[Any, float]]] = {}

    @contextlib.contextmanager
    def recording(self) -> Iterator[None]:
        """Listen while the block compiles and runs."""
        with compat.deciding(compat.Ear(self._padding, self._ways, self._configs)):
            yield

    def recorded(self) -> Recording:
        """Everything that was decided."""
        return Recording(
            card=torch.cuda.get_device_name(),
            torch=torch.__version__,
            paddings=tuple(self._paddings.values()),
            choices=tuple(self._choices.values()),
            kernels=tuple(self._kernels()),
        )

    def _padding(self, key: str, sizes: Sizes, plain_ms: float, padded_ms: float, pads: bool) -> None:
        plain, padded = _microseconds(plain_ms), _microseconds(padded_ms)
        self._paddings[key, sizes] = RecordedPadding(key, sizes, pads, plain, padded)

    def _ways(self, operator: str, inputs: str, timings: Mapping[Any, float]) -> None:
        winner = min(timings, key=lambda way: timings[way])
        ways = (TimedWay(autotuning.candidate_name(way), _microseconds(ms)) for way, ms in timings.items())
        name = autotuning.candidate_name(winner)
        self._choices[operator, inputs] = RecordedChoice(operator, inputs, tuple(ways), name)

    def _configs(self, tuner: Any, timings: Mapping[Any, float]) -> None:
        self._tuners[id(tuner)] = tuner, dict(timings)

    def _kernels(self) -> Iterator[RecordedKernel]:
        """The kernels that had several configurations, with what each is launched with by now."""
        seen: set[str] = set()
        for tuner, timings in self._tuners.values():
            source, chosen = compat.text(tuner), compat.winner(tuner)
            if source is None or chosen is None or identity(source) in seen:
                continue
            seen.add(identity(source))
            timed = tuple(_timed(Configuration.of(launcher.config), ms) for launcher, ms in timings.items())
            same = (one for one in timed if one.is_same(chosen.blocks, chosen.num_warps, chosen.num_stages))
            yield RecordedKernel(identity(source), timed, next(same, _timed(chosen, math.inf)))


def _timed(config: Configuration, ms: float) -> TimedConfig:
    return TimedConfig(config.blocks, config.num_warps, config.num_stages, _microseconds(ms))


def _microseconds(ms: float) -> float | None:
    """To three digits after the point; None for what could not be run, which torch counts as infinitely slow."""
    return round(float(ms) * 1e3, 3) if math.isfinite(ms) else None
