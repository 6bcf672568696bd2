"""Recorded decisions are found by what torch decides by, and only those of the same minor version."""

from __future__ import annotations

from pathlib import Path

import pytest

from inductoscope.compiler.card.replay import Replay, identity
from inductoscope.protocol import own_devices
from inductoscope.protocol.recording import (
    RecordedChoice,
    RecordedKernel,
    RecordedPadding,
    Recording,
    TimedConfig,
    TimedWay,
)

KERNEL = "'kernel_name': 'triton_poi_fused_add_3', 'backend_hash': 'AB12'\ndef triton_poi_fused_add_3(x): pass\n"
RECORDING = Recording(
    "NVIDIA H200",
    "2.11.0+cu130",
    paddings=(RecordedPadding("key", (1, 8, 7, 9), True, 3.0, 1.0),),
    choices=(RecordedChoice("mm", "[8, 7]", (TimedWay("mm", 3.0), TimedWay("triton_mm", 1.0)), "triton_mm"),),
    kernels=(RecordedKernel(identity(KERNEL), (), TimedConfig({"XBLOCK": 64}, 4, 1, 2.0)),),
)


@pytest.mark.parametrize("torch", ["2.11.0", "2.11.1+cpu"])
def test_decisions_are_found_by_their_keys(torch: str) -> None:
    replay = Replay(RECORDING, torch)
    assert replay.problem is None
    assert replay.padding("key", (1, 8, 7, 9)) is RECORDING.paddings[0]
    assert replay.choice("mm", "[8, 7]") is RECORDING.choices[0]
    assert replay.kernel(KERNEL) is RECORDING.kernels[0]
    assert replay.as_recorded == "as recorded on a NVIDIA H200, torch 2.11.0"


def test_the_winners_of_a_real_card_can_be_read() -> None:
    own = own_devices.read_file(Path(__file__).parents[1] / "data" / "device-h200.json")
    assert own.recording is not None
    decided = (len(own.recording.paddings), len(own.recording.choices), len(own.recording.kernels))
    assert (own.device.name, own.recording.card, decided) == ("NVIDIA H200", "NVIDIA H200", (18, 14, 51))
    assert Replay(own.recording, "2.11.1").problem is None
    winners = [one for one in own.recording.kernels if one.winner in one.timed]
    assert len(winners) == 39  # the others were found by a search that goes on from the candidates
    assert all(one.winner.us == min(timed.us for timed in one.timed if timed.us) for one in winners)


def test_what_was_not_recorded_has_no_answer() -> None:
    replay = Replay(RECORDING, "2.11.0")
    assert replay.padding("key", (1, 8, 7, 10)) is None
    assert replay.padding("other", (1, 8, 7, 9)) is None
    assert replay.choice("bmm", "[8, 7]") is None
    assert replay.choice("mm", "[8, 8]") is None
    assert replay.kernel(KERNEL.replace("pass", "return")) is None


def test_another_version_of_torch_gets_no_answer_and_is_told_why() -> None:
    replay = Replay(RECORDING, "2.12.1")
    assert replay.padding("key", (1, 8, 7, 9)) is None
    assert not replay.has_choices
    assert replay.kernel(KERNEL) is None
    assert replay.problem is not None
    assert "decided by torch 2.11 and is not used with torch 2.12" in replay.problem


def test_without_a_recording_there_is_nothing_to_say() -> None:
    assert Replay().problem is None
    assert Replay().kernel(KERNEL) is None


def test_a_kernel_is_the_same_under_another_number_and_on_another_machine() -> None:
    assert identity(KERNEL.replace("add_3", "add_12")) == identity(KERNEL)
    assert identity("\n" + KERNEL.replace("AB12", "CD34") + "\n") == identity(KERNEL)
    assert identity(KERNEL.replace("(x)", "(y)")) != identity(KERNEL)
