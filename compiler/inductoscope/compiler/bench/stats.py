"""Figures from samples: medians, spread, speed-up, when compiling pays off.  Knows numbers only."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from inductoscope.protocol.report import Timing

# On a quiet machine the middle half of the rounds lies within a few percent; far more means that it is busy.
_WIDEST = 1.5


@dataclass(frozen=True)
class Samples:
    """Times of one block in microseconds a call, and how many calls they stand for."""

    us: tuple[float, ...]
    calls: int


@dataclass(frozen=True)
class Round:
    """One block of each side, taken right after one another."""

    eager: Samples
    compiled: Samples


@dataclass(frozen=True)
class Speedup:
    """Eager time over compiled time: of the medians over all rounds, and the quartiles of the rounds' own ratios."""

    overall: float
    low: float
    high: float

    @property
    def steady(self) -> bool:
        """Whether the rounds agree well enough to state a figure."""
        return max(self.high, self.overall) <= _WIDEST * min(self.low, self.overall)


def timing(blocks: Sequence[Samples]) -> Timing:
    """Median and interquartile range over all samples of all blocks (at least two samples)."""
    times = [us for block in blocks for us in block.us]
    lower, median, upper = statistics.quantiles(times, n=4, method="inclusive")
    return Timing(us=median, iqr_us=upper - lower, runs=sum(block.calls for block in blocks))


def speedup(rounds: Sequence[Round]) -> Speedup:
    """How much faster compiled is than eager (at least two rounds)."""
    ratios = [statistics.median(item.eager.us) / statistics.median(item.compiled.us) for item in rounds]
    eager, compiled = timing([item.eager for item in rounds]), timing([item.compiled for item in rounds])
    low, _, high = statistics.quantiles(ratios, n=4, method="inclusive")
    return Speedup(eager.us / compiled.us, low, high)


def calls_to_pay_off(compile_ms: float, eager: Timing, compiled: Timing) -> int | None:
    """After how many calls the time saved exceeds the time spent compiling; None when each call saves nothing."""
    saved_ms = (eager.us - compiled.us) / 1e3
    return math.ceil(compile_ms / saved_ms) if saved_ms > 0 else None
