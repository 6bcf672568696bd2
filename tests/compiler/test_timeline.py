"""Phases of a run: nested, each moment counted once at every depth."""

from __future__ import annotations

import threading

import pytest

from inductoscope.compiler.timeline import Timeline
from inductoscope.protocol.report import PhaseTime


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def timeline(clock: Clock) -> Timeline:
    return Timeline(clock)


def test_a_phase_encloses_its_parts(clock: Clock, timeline: Timeline):
    with timeline.phase("outer", "0/0"):
        clock.now += 1
        with timeline.phase("inner"):
            clock.now += 2
        clock.now += 4
    assert timeline.phases() == (
        PhaseTime("outer", 7000.0, 0.0, None, "0/0"),
        PhaseTime("inner", 2000.0, 1000.0, 0, "0/0"),
    )


def test_time_outside_of_all_phases_belongs_to_none(clock: Clock, timeline: Timeline):
    clock.now += 8
    with timeline.phase("one"):
        clock.now += 1
    clock.now += 1
    assert timeline.phases() == (PhaseTime("one", 1000.0, 8000.0),)
    assert timeline.elapsed_ms() == 10000.0


def test_phases_without_parts_add_up_and_those_with_parts_stay_apart(clock: Clock, timeline: Timeline):
    with timeline.phase("drive"):
        for _ in range(1000):
            with timeline.phase("step", "0/0"):
                clock.now += 1
        for _ in range(2):
            with timeline.phase("compile"), timeline.phase("dynamo"):
                clock.now += 1
    told = [(phase.name, phase.ms, phase.parent) for phase in timeline.phases()]
    assert told == [
        ("drive", 1_002_000.0, None),
        ("step", 1_000_000.0, 0),
        ("compile", 1000.0, 0),
        ("dynamo", 1000.0, 2),
        ("compile", 1000.0, 0),
        ("dynamo", 1000.0, 4),
    ]


def test_one_that_calls_itself_is_counted_once(clock: Clock, timeline: Timeline):
    with timeline.phase("passes"), timeline.phase("passes"):
        clock.now += 1
    assert timeline.phases() == (PhaseTime("passes", 1000.0, 0.0),)


def test_what_still_runs_is_told_up_to_now(clock: Clock, timeline: Timeline):
    timeline.begin("drive")
    clock.now += 3
    assert [phase.ms for phase in timeline.phases()] == [3000.0]


def test_the_end_of_a_phase_ends_what_an_exception_left_open_inside(clock: Clock, timeline: Timeline):
    outer = timeline.begin("outer")
    timeline.begin("inner")
    clock.now += 1
    timeline.end(outer)
    clock.now += 1
    with timeline.phase("next"):
        clock.now += 1
    assert [(phase.name, phase.ms, phase.parent) for phase in timeline.phases()] == [
        ("outer", 1000.0, None),
        ("inner", 1000.0, 0),
        ("next", 1000.0, None),
    ]


def test_another_thread_adds_nothing(clock: Clock, timeline: Timeline):
    def work() -> None:
        with timeline.phase("elsewhere"):
            clock.now += 1

    with timeline.phase("waiting"):
        worker = threading.Thread(target=work)
        worker.start()
        worker.join()
    assert timeline.phases() == (PhaseTime("waiting", 1000.0, 0.0),)
