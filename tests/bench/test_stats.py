"""Figures from samples."""

import pytest

from inductoscope.compiler.bench.stats import Round, Samples, Speedup, calls_to_pay_off, speedup, timing
from inductoscope.protocol.report import Timing


def test_timing_pools_the_samples_of_all_blocks_and_counts_their_calls():
    result = timing([Samples((10.0, 20.0), calls=200), Samples((30.0, 40.0, 1000.0), calls=300)])
    assert result == Timing(us=30.0, iqr_us=20.0, runs=500)


def test_one_disturbed_round_moves_neither_the_speedup_nor_its_range_much():
    quiet = Round(eager=Samples((20.0, 20.0), 2), compiled=Samples((10.0, 10.0), 2))
    disturbed = Round(eager=Samples((20.0, 20.0), 2), compiled=Samples((9000.0, 9000.0), 2))
    ratio = speedup([quiet, quiet, quiet, quiet, disturbed])
    assert (ratio.overall, ratio.low, ratio.high) == (2.0, 2.0, 2.0)


def test_rounds_that_disagree_show_in_the_range():
    rounds = [Round(Samples((10.0 * k,), 1), Samples((10.0,), 1)) for k in (1, 2, 3, 4, 5)]
    ratio = speedup(rounds)
    assert (ratio.low, ratio.high) == (2.0, 4.0)
    assert not ratio.steady


@pytest.mark.parametrize(
    ("overall", "low", "high", "steady"),
    [(2.0, 1.9, 2.1, True), (2.0, 1.0, 2.1, False), (744.0, 0.7, 672.0, False), (2.3, 1.2, 1.5, False)],
)
def test_a_figure_is_steady_when_all_estimates_lie_close_together(overall, low, high, steady):
    assert Speedup(overall, low, high).steady is steady


def test_compiling_pays_off_when_the_saved_time_exceeds_it():
    eager, compiled = Timing(us=3000.0, iqr_us=0.0, runs=1), Timing(us=1000.0, iqr_us=0.0, runs=1)
    assert calls_to_pay_off(1001.0, eager, compiled) == 501


def test_compiling_never_pays_off_when_a_call_saves_nothing():
    same = Timing(us=5.0, iqr_us=0.0, runs=1)
    assert calls_to_pay_off(1.0, same, same) is None
