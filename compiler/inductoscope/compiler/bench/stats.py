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
    """Eager time over compiled time: median and quartiles of the ratios of the single rounds."""

    median: float
    low: float
    high: float

    rounds: int = 0

    @property
    def relative_error(self) -> float:
        """Half of the 95 % interval of the median over itself, as if the ratios were normal with these quartiles.

        The standard deviation is the distance of the quartiles over 1.349, and the standard error of a median 1.2533
        standard deviations over the root of their number; the interval reaches 1.96 of these to both sides.
        """
        deviation = (self.high - self.low) / 1.349
        return 1.96 * 1.2533 * deviation / math.sqrt(max(self.rounds, 1)) / self.median

    @property
    def steady(self) -> bool:
        """Whether the rounds agree well enough to state a figure."""
        return self.high <= _WIDEST * self.low


def timing(blocks: Sequence[Samples]) -> Timing:
    """Median of the blocks' medians, and interquartile range over all samples (at least two).

    Blocks last equally long, so a slow one has fewer samples; each counts the same, or the two sides would not be
    comparable on a machine that changes its pace.
    """
    lower, _, upper = statistics.quantiles([us for block in blocks for us in block.us], n=4, method="inclusive")
    median = statistics.median(statistics.median(block.us) for block in blocks)
    return Timing(us=median, iqr_us=upper - lower, runs=sum(block.calls for block in blocks))


def speedup(rounds: Sequence[Round]) -> Speedup:
    """How much faster compiled is than eager (at least two rounds).

    The two blocks of a round follow one another, so their ratio holds whatever the pace of the machine was then.
    """
    ratios = [statistics.median(item.eager.us) / statistics.median(item.compiled.us) for item in rounds]
    low, median, high = statistics.quantiles(ratios, n=4, method="inclusive")
    return Speedup(median, low, high, len(rounds))


def calls_to_pay_off(compile_ms: float, eager: Timing, compiled: Timing) -> int | None:
    """After how many calls the time saved exceeds the time spent compiling; None when each call saves nothing."""
    saved_ms = (eager.us - compiled.us) / 1e3
    return math.ceil(compile_ms / saved_ms) if saved_ms > 0 else None
