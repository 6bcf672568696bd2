"""Figures from samples."""

import pytest

from inductoscope.compiler.bench.stats import Round, Samples, Speedup, calls_to_pay_off, speedup, timing
from inductoscope.protocol.report import Timing


def test_timing_counts_each_block_the_same_and_takes_the_spread_of_all_samples():
    quick, slow = Samples((10.0,) * 9, calls=900), Samples((30.0,), calls=100)
    result = timing([quick, slow, slow])
    assert result == Timing(us=30.0, iqr_us=0.0, runs=1100)
    assert timing([Samples((10.0, 20.0, 30.0, 40.0, 50.0), calls=5)]).iqr_us == 20.0


def test_one_disturbed_round_moves_neither_the_speedup_nor_its_range_much():
    quiet = Round(eager=Samples((20.0, 20.0), 2), compiled=Samples((10.0, 10.0), 2))
    disturbed = Round(eager=Samples((20.0, 20.0), 2), compiled=Samples((9000.0, 9000.0), 2))
    ratio = speedup([quiet, quiet, quiet, quiet, disturbed])
    assert (ratio.median, ratio.low, ratio.high) == (2.0, 2.0, 2.0)


def test_a_machine_that_slows_down_half_way_leaves_the_speedup_alone():
    fast = Round(eager=Samples((20.0,) * 50, 50), compiled=Samples((10.0,) * 100, 100))
    slow = Round(eager=Samples((60.0,) * 17, 17), compiled=Samples((30.0,) * 33, 33))
    assert speedup([fast, fast, slow, slow]).median == 2.0


def test_rounds_that_disagree_show_in_the_range():
    rounds = [Round(Samples((10.0 * k,), 1), Samples((10.0,), 1)) for k in (1, 2, 3, 4, 5)]
    ratio = speedup(rounds)
    assert (ratio.low, ratio.median, ratio.high) == (2.0, 3.0, 4.0)
    assert not ratio.steady


@pytest.mark.parametrize(("low", "high", "steady"), [(1.9, 2.1, True), (0.9, 2.1, False), (0.7, 672.0, False)])
def test_a_figure_is_steady_when_the_middle_half_of_the_rounds_agrees(low, high, steady):
    assert Speedup(2.0, low, high).steady is steady


def test_compiling_pays_off_when_the_saved_time_exceeds_it():
    eager, compiled = Timing(us=3000.0, iqr_us=0.0, runs=1), Timing(us=1000.0, iqr_us=0.0, runs=1)
    assert calls_to_pay_off(1001.0, eager, compiled) == 501


def test_compiling_never_pays_off_when_a_call_saves_nothing():
    same = Timing(us=5.0, iqr_us=0.0, runs=1)
    assert calls_to_pay_off(1.0, same, same) is None
