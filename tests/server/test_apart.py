"""The scheduler's reasons in words."""

from __future__ import annotations

import pytest

from inductoscope.protocol.report import ApartFrom, FusionGroup, GroupOp, Rung, Status, TargetReport
from inductoscope.server import apart

FILE = "/w/model.py"
OPS = (GroupOp("aten.add", FILE, 60), GroupOp("aten.add", FILE, 34), GroupOp("aten.mul", "/w/lib.py", 3))
GROUP = FusionGroup("3/0:4", "triton_poi_fused_add_1", "pointwise", "vertical", OPS)
REPORT = TargetReport(FILE, "f", 1, "cpu", Rung.LOWER, Status.COMPILED, fusion_groups=(GROUP,))


def test_a_neighbour_has_its_kernels_name_and_lines() -> None:
    said = apart.reason(ApartFrom("3/0:4", "no shared data"), REPORT, FILE)
    assert said == "not fused with triton_poi_fused_add_1 (lines 34, 60, lib.py:3): they share no data"


def test_a_group_that_is_not_in_the_report_has_no_name() -> None:
    assert apart.reason(ApartFrom("9/9:9", "no shared data"), REPORT, FILE) == (
        "not fused with another kernel: they share no data"
    )


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        ("intermediate nodes between node1 & node2", "something in between needs what the one makes and is needed by"),
        ("memory deps did not match", "the one reads in another order, or other parts, than the other writes"),
        ("nodes numel incompatibility", "they loop over different sizes"),
        ("numel/rnumel mismatch (reduce) (8, 1), (8192, 8)", "8 results of 8192 elements each, 1 of 8"),
        ("numel/rnumel mismatch (reduce) (12, 1), (((512*s27 + 11)//12), 12)", "12 results of ((512*s27 + 11)//12) el"),
        ("device mismatch (cuda:0 vs cpu)", "they run on different devices: cuda:0, cpu"),
        ("node1 is extern but node2 is not SchedulerNode", "the one is extern but the other is not SchedulerNode"),
        ("node1 and node2 uses different buf layouts", "the two uses different buf layouts"),
        ("something that nobody has seen yet", "something that nobody has seen yet"),
    ],
)
def test_reasons_are_in_words_where_they_are_known(reason: str, said: str) -> None:
    text = apart.reason(ApartFrom("3/0:4", reason), REPORT, FILE)
    assert said in text and "node1" not in text and "node2" not in text
