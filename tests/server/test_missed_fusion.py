"""Kernels that stay apart from a neighbour, as findings on request."""

from __future__ import annotations

from dataclasses import replace

import pytest

from inductoscope.protocol.report import ApartFrom, FusionGroup, GroupOp, Rung, Severity, Status, TargetReport
from inductoscope.server import missed_fusion

LINES = {1: "y = x + 1", 2: "    z = y.sum(0)  # here", 3: "w = z @ z"}
FIRST = FusionGroup("0/0:0", "poi_0", "pointwise", "none", (GroupOp("aten.add", "m.py", 1),))
SECOND = FusionGroup("0/0:1", "red_1", "reduction", "none", (GroupOp("aten.sum", "m.py", 2),))
REASON = "memory deps did not match"


def found(*groups: FusionGroup) -> list[tuple[int, int, int, str]]:
    report = TargetReport("m.py", "f", 1, "cpu", Rung.LOWER, Status.COMPILED, fusion_groups=groups)
    told = list(missed_fusion.findings(report, lambda _, line: LINES[line]))
    assert all(one.code == "missed-fusion" and one.severity is Severity.HINT for one in told)
    return [(one.line, one.column, one.end_column, one.message) for one in told]


def test_a_pair_is_told_once_at_the_line_of_the_later_kernel() -> None:
    first = replace(FIRST, apart_from=(ApartFrom("0/0:1", REASON),))
    second = replace(SECOND, apart_from=(ApartFrom("0/0:0", REASON),))
    [(line, column, end, message)] = found(first, second)
    assert (line, LINES[line][column:end]) == (2, "z = y.sum(0)  # here")
    assert message == (
        "red_1 is not fused with poi_0 (line 1): the one reads in another order, or other parts, than the other writes."
    )


@pytest.mark.parametrize(
    "reason", ["no shared data", "extern kernel: a library call is not fused", "device mismatch (cpu vs cuda)"]
)
def test_what_nothing_could_make_one_kernel_is_not_told(reason: str) -> None:
    assert found(FIRST, replace(SECOND, apart_from=(ApartFrom("0/0:0", reason),))) == []


def test_a_kernel_without_a_line_of_the_program_is_not_told() -> None:
    nowhere = replace(SECOND, ops=(GroupOp("aten.sum", None, None),), apart_from=(ApartFrom("0/0:0", REASON),))
    assert found(FIRST, nowhere) == []


def test_a_neighbour_that_the_report_does_not_have_is_not_told() -> None:
    assert found(replace(SECOND, apart_from=(ApartFrom("9/9:0", REASON),))) == []
