"""What `--fail-on` lets through."""

from __future__ import annotations

import pytest

from inductoscope.protocol.report import ApartFrom, Finding, FusionGroup, GroupOp, Rung, Severity, Status, TargetReport
from inductoscope.server.gate import GateError, parse


def target(*findings: Finding, groups: tuple[FusionGroup, ...] = ()) -> TargetReport:
    return TargetReport("m.py", "f", 1, "cpu", Rung.LOWER, Status.COMPILED, findings=findings, fusion_groups=groups)


def finding(code: str, severity: Severity) -> Finding:
    return Finding(code, severity, "m.py", 1, 0, 1, 1, "said", Rung.CAPTURE)


BREAK = finding("graph-break", Severity.WARNING)
RECOMPILE = finding("recompile", Severity.INFORMATION)
FAILED = finding("compile-error", Severity.ERROR)


@pytest.mark.parametrize(
    ("text", "stopped"),
    [
        ("", []),
        ("break", [BREAK]),
        ("graph-break, recompile", [BREAK, RECOMPILE]),
        ("error", [FAILED]),
        ("warning", [BREAK, FAILED]),
        ("any", [BREAK, RECOMPILE, FAILED]),
        ("recompile,error", [RECOMPILE, FAILED]),
    ],
)
def test_names_and_severities(text: str, stopped: list[Finding]) -> None:
    gate = parse(text)
    assert list(filter(gate.names, gate.considered(target(BREAK, RECOMPILE, FAILED)))) == stopped


def test_a_name_of_nothing_is_a_sentence() -> None:
    with pytest.raises(GateError, match=r"--fail-on brake names no finding\. Is break meant\?"):
        parse("brake")


APART = (
    FusionGroup("0/0:0", "poi_0", "pointwise", "none", (GroupOp("aten.add", "m.py", 1),)),
    FusionGroup(
        "0/0:1",
        "red_1",
        "reduction",
        "none",
        (GroupOp("aten.sum", "m.py", 2),),
        (ApartFrom("0/0:0", "numel mismatch"),),
    ),
)


@pytest.mark.parametrize(("text", "stops"), [("missed-fusion", True), ("any", False), ("break", False)])
def test_what_is_told_on_request_stops_only_by_its_name(text: str, stops: bool) -> None:
    gate = parse(text)
    assert any(map(gate.names, gate.considered(target(groups=APART)))) is stops
