"""What only the card can decide while kernels are generated: open without a recording, closed with one."""

from __future__ import annotations

from typing import Any

import pytest

from inductoscope.compiler.card.replay import Replay, identity
from inductoscope.compiler.lower import card_decisions
from inductoscope.protocol.recording import RecordedKernel, Recording, TimedConfig
from inductoscope.protocol.report import Basis, DecisionKind, Kernel, KernelLanguage, Launch, Phase, Place

HERE = Place("model.py", 7)


def kernel(searched: bool, configs: int = 2) -> Kernel:
    return Kernel(
        "triton_0", KernelLanguage.TRITON, Phase.FORWARD, "0/0", "the text", (HERE,),
        launch=Launch(None, None, None, configs, searched),
    )  # fmt: skip


def test_a_search_is_open_until_a_card_has_made_it() -> None:
    [one] = card_decisions.of_kernels([kernel(True), kernel(False)], Replay())
    assert (one.kind, one.basis, one.subject) == (DecisionKind.SEARCH, Basis.RULE, "triton_0")
    assert (one.file, one.line, one.graph) == ("model.py", 7, "0/0")
    assert [way.chosen for way in one.candidates] == [None, None]
    assert "fastest of 2 configurations" in one.text


def test_a_recorded_search_ends_where_the_card_ended() -> None:
    won = TimedConfig({"XBLOCK": 512}, 8, 1, 12.5)
    recording = Recording("NVIDIA H200", "2.11.0", kernels=(RecordedKernel(identity("the text"), (won,), won),))
    [one] = card_decisions.of_kernels([kernel(True)], Replay(recording, "2.11.0"))
    assert one.basis is Basis.RECORDED
    [way] = one.candidates
    assert (way.name, way.us, way.chosen) == ("XBLOCK=512, num_warps=8, num_stages=1", 12.5, True)
    assert "as recorded on a NVIDIA H200" in one.text


@pytest.mark.parametrize(
    ("settings", "names"),
    [
        ({}, []),
        ({"benchmark_fusion": False}, []),
        ({"benchmark_fusion": True}, ["benchmark_fusion"]),
        ({"benchmark_combo_kernel": True, "benchmark_fusion": True}, ["benchmark_fusion", "benchmark_combo_kernel"]),
    ],
)
def test_fusions_are_timed_where_the_program_asks_for_it(settings: dict[str, Any], names: list[str]) -> None:
    found = list(card_decisions.of_graph("0/0", settings, HERE))
    assert [one.text.partition(" ")[0] for one in found] == names
    assert all(one.kind is DecisionKind.FUSION and len(one.candidates) == 2 for one in found)
