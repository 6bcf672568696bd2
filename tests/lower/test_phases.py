"""Phase times: every moment counts once."""

from inductoscope.compiler.lower.phases import Stopwatch
from inductoscope.protocol.report import PhaseTime


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_an_inner_phase_takes_its_time_from_the_outer_one():
    clock = Clock()
    watch = Stopwatch(clock)
    with watch.phase("outer"):
        clock.now += 1
        with watch.phase("inner"):
            clock.now += 2
        clock.now += 4
    assert watch.times() == (PhaseTime("outer", 5000.0), PhaseTime("inner", 2000.0))


def test_time_outside_of_all_phases_belongs_to_none():
    clock = Clock()
    watch = Stopwatch(clock)
    with watch.phase("one"):
        clock.now += 1
    clock.now += 8
    with watch.phase("one"):
        clock.now += 1
    assert watch.times() == (PhaseTime("one", 2000.0),)
