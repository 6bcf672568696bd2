"""Is one measured time different from another, or is it noise?  Knows numbers only.

The rule: the medians of the rounds differ by more than three standard errors of both together, and by more than 2 %.
The first part is what the rounds themselves say; the second is what two runs of the same program differ by on a quiet
machine, through where code and data happen to lie, which no round shows.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from inductoscope.protocol.bench import Change, RoundTimes
from inductoscope.protocol.report import Benchmark

ERRORS = 3.0
FLOOR = 0.02
LEAST_ROUNDS = 3

RULE = (
    f"a difference counts when the medians of the rounds are more than {ERRORS:g} standard errors and more than "
    f"{FLOOR:.0%} apart"
)


@dataclass(frozen=True)
class Difference:
    """Before over now with the interval that noise leaves, and whether 1 is outside of it."""

    ratio: float
    low: float
    high: float

    @property
    def beyond_noise(self) -> bool:
        """Whether something became different."""
        return not self.low <= 1 <= self.high


def difference(before: Sequence[float], now: Sequence[float]) -> Difference | None:
    """Compare the medians of rounds in any one unit; None where there are too few of them."""
    if len(before) < LEAST_ROUNDS or len(now) < LEAST_ROUNDS:
        return None
    ratio = statistics.median(before) / statistics.median(now)
    error = math.hypot(relative_error(before), relative_error(now))
    margin = max(ERRORS * error, FLOOR)
    return Difference(ratio, ratio / (1 + margin), ratio * (1 + margin))


def relative_error(times: Sequence[float]) -> float:
    """The standard error of the median over the median, as if the times were normal with these quartiles."""
    low, median, high = statistics.quantiles(times, n=4, method="inclusive")
    return 1.2533 * (high - low) / 1.349 / math.sqrt(len(times)) / median


def change(before: Benchmark, now: Benchmark, called: str) -> Change | None:
    """What became of the compiled time since `before`, which is `called` so; None where nothing can be said."""
    found = difference(compiled_us(before.rounds), compiled_us(now.rounds))
    if found is None or before.compiled is None or now.compiled is None:
        return None
    return Change(
        before=called,
        before_us=before.compiled.us,
        now_us=now.compiled.us,
        ratio=found.ratio,
        low=found.low,
        high=found.high,
        beyond_noise=found.beyond_noise,
        rule=RULE,
    )


def compiled_us(rounds: Sequence[RoundTimes]) -> tuple[float, ...]:
    """The compiled side of the rounds."""
    return tuple(one.compiled_us for one in rounds)
