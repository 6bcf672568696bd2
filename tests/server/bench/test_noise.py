"""When a difference between two measured times counts."""

from __future__ import annotations

import random

import pytest

from inductoscope.protocol.bench import RoundTimes
from inductoscope.protocol.report import Benchmark, Timing
from inductoscope.server.bench import noise


def times(median: float, spread: float = 0.01, count: int = 10) -> list[float]:
    return [median * (1 + spread * (2 * index / (count - 1) - 1)) for index in range(count)]


def benchmark(median: float) -> Benchmark:
    rounds = tuple(RoundTimes(2 * one, one) for one in times(median))
    return Benchmark("a card", "a clock", compiled=Timing(median, 1.0, 10), rounds=rounds)


def test_a_clear_difference_is_beyond_noise_in_either_direction():
    faster, slower = noise.difference(times(100), times(80)), noise.difference(times(80), times(100))
    assert faster.ratio == pytest.approx(1.25)
    assert faster.beyond_noise
    assert slower.ratio == pytest.approx(0.8)
    assert slower.beyond_noise


def test_less_than_two_percent_never_counts_however_quiet_the_machine_is():
    assert not noise.difference(times(100, 0.0001), times(98.5, 0.0001)).beyond_noise
    assert noise.difference(times(100, 0.0001), times(97, 0.0001)).beyond_noise


def test_the_same_difference_is_noise_where_the_rounds_scatter():
    assert noise.difference(times(100, 0.01), times(95, 0.01)).beyond_noise
    assert not noise.difference(times(100, 0.2), times(95, 0.2)).beyond_noise


def test_equal_programs_are_seldom_told_apart():
    draw = random.Random(1)
    pairs = [([draw.gauss(100, 5) for _ in range(10)], [draw.gauss(100, 5) for _ in range(10)]) for _ in range(400)]
    wrong = sum(noise.difference(before, now).beyond_noise for before, now in pairs)
    assert wrong <= 0.05 * len(pairs)


def test_too_few_rounds_say_nothing():
    assert noise.difference([100.0, 101.0], times(50)) is None
    few = Benchmark("a card", "a clock", compiled=Timing(1, 1, 1), rounds=(RoundTimes(1, 1),))
    assert noise.change(few, benchmark(50), "then") is None


def test_a_change_says_what_was_and_what_is():
    change = noise.change(benchmark(100), benchmark(50), "revision HEAD~1")
    assert (change.before, change.before_us, change.now_us) == ("revision HEAD~1", 100, 50)
    assert change.ratio == pytest.approx(2.0)
    assert change.low < 2 < change.high
    assert change.beyond_noise
