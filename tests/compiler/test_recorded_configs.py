"""Which configuration is called likely where a card's winner was recorded."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from inductoscope.compiler.assembling import recorded
from inductoscope.compiler.card.replay import Replay, identity
from inductoscope.protocol.recording import RecordedKernel, Recording, TimedConfig
from inductoscope.protocol.report import ConfigFact

pytestmark = pytest.mark.slow  # imports torch
SOURCE = "def kernel(x): pass\n"
FACTS = (ConfigFact({"XBLOCK": 64}, 4, 1, likely=True), ConfigFact({"XBLOCK": 128}, 8, 1))


def replay(*timed: TimedConfig, winner: TimedConfig) -> Replay:
    kernels = (RecordedKernel(identity(SOURCE), timed, winner),)
    return Replay(Recording("NVIDIA H200", "2.11.0", kernels=kernels), "2.11.0")


def test_the_winner_is_the_likely_one_and_all_have_their_times() -> None:
    slow, fast = TimedConfig({"XBLOCK": 64}, 4, 1, 3.0), TimedConfig({"XBLOCK": 128}, 8, 1, 2.0)
    found, note = recorded.configs(FACTS, SOURCE, replay(slow, fast, winner=fast))
    assert [(fact.likely, fact.us) for fact in found] == [(False, 3.0), (True, 2.0)]
    assert note == "The configuration is the fastest of 2, as recorded on a NVIDIA H200, torch 2.11.0."


def test_a_winner_that_is_no_candidate_is_named_and_marks_nothing() -> None:
    other = TimedConfig({"XBLOCK": 32}, 2, 1, 1.0)
    found, note = recorded.configs(FACTS, SOURCE, replay(TimedConfig({"XBLOCK": 64}, 4, 1, 3.0), winner=other))
    assert [fact.likely for fact in found] == [True, False]
    assert note is not None and "none of these: XBLOCK=32, 2 warps, 1 stages" in note


def test_a_kernel_that_was_not_recorded_stays_as_it_is() -> None:
    assert recorded.configs(FACTS, SOURCE + "#", replay(winner=TimedConfig({}, 1, 1))) == (FACTS, None)
    assert recorded.configs(FACTS, SOURCE, Replay()) == (FACTS, None)
