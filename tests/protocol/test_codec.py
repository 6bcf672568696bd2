"""Dataclasses to JSON and back."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inductoscope.protocol import codec, messages, report


def _full_target_report() -> report.TargetReport:
    finding = report.Finding(
        code="graph-break",
        severity=report.Severity.WARNING,
        file="/m.py",
        line=3,
        column=4,
        end_line=3,
        end_column=9,
        message="split",
        rung=report.Rung.CAPTURE,
        outcome=report.Outcome.SPLIT,
        related=(report.Related("/m.py", 9, "called from here"),),
    )
    kernel = report.Kernel(
        name="k",
        language=report.KernelLanguage.TRITON,
        phase=report.Phase.FORWARD,
        graph="0/0",
        source="…",
        lines=(report.Place("/m.py", 3, "forward"),),
        line_map=(report.LineMapping(12, "/m.py", 3),),
        predicted=report.Predicted(1.5, "memory", "roofline", 1.0, 2.0),
    )
    return report.TargetReport(
        file="/m.py",
        name="Model.forward",
        line=2,
        device="sim:H200",
        rung=report.Rung.LOWER,
        status=report.Status.PARTIAL,
        inputs=(report.InputSet("get_inputs", ("f32[4]",)),),
        findings=(finding,),
        kernels=(kernel,),
    )


def test_a_report_survives_json() -> None:
    whole = report.Report("0.1.0", "2.13.0", None, "3.11.7", (_full_target_report(),))
    text = json.dumps(codec.to_json(whole))
    assert codec.from_json(report.Report, json.loads(text)) == whole


def test_the_json_name_of_a_field_can_be_no_python_name() -> None:
    assert codec.to_json(report.InputSet("comment", ()))["from"] == "comment"


def test_unknown_fields_are_ignored_and_missing_ones_are_named() -> None:
    good = {"file": "/a.py", "line": 1, "message": "m", "from_the_future": 1}
    assert codec.from_json(report.Related, good) == report.Related("/a.py", 1, "m")
    with pytest.raises(codec.CodecError, match=r"Related: 'line' is missing"):
        codec.from_json(report.Related, {"file": "/a.py", "message": "m"})


@pytest.mark.parametrize(
    ("cls", "value", "where"),
    [
        (report.Related, {"file": 1, "line": 1, "message": "m"}, "Related.file"),
        (report.Related, {"file": "a", "line": True, "message": "m"}, "Related.line"),
        (report.InputSet, {"from": "x", "args": "f32"}, "InputSet.args"),
        (report.InputSet, {"from": "x", "args": [1]}, r"InputSet.args\[0\]"),
        (report.CudaGraphs, {"status": "on", "reason": 3}, "CudaGraphs.reason"),
    ],
)
def test_a_wrong_type_is_named_with_its_path(cls: type, value: object, where: str) -> None:
    with pytest.raises(codec.CodecError, match=where):
        codec.from_json(cls, value)


def test_an_unknown_enum_value_is_refused() -> None:
    with pytest.raises(codec.CodecError, match="Status"):
        codec.from_json(_Holder, {"status": "melted"})


@dataclass(frozen=True)
class _Holder:
    status: report.Status = report.Status.COMPILED
    texts: dict[str, str] = field(default_factory=dict)
    pair: tuple[int, str] = (0, "")


@given(st.builds(_Holder, st.sampled_from(report.Status), st.dictionaries(st.text(), st.text())))
def test_round_trip(holder: _Holder) -> None:
    assert codec.from_json(_Holder, json.loads(json.dumps(codec.to_json(holder)))) == holder


def test_what_has_no_json_form_is_refused() -> None:
    with pytest.raises(codec.CodecError, match="object"):
        codec.to_json(object())


class TestMessages:
    def test_round_trip(self) -> None:
        target = messages.Target("/m.py", "f", 1, messages.TargetKind.FUNCTION, "f")
        run = messages.Run(7, target, "cpu", report.Rung.LOWER, {"/m.py": "x = 1\n"})
        assert messages.from_wire(messages.to_wire(run)) == run

    @pytest.mark.parametrize("value", [None, 3, {}, {"type": 1}, {"type": "Nonsense", "body": {}}])
    def test_what_is_no_message_is_refused(self, value: object) -> None:
        with pytest.raises(codec.CodecError):
            messages.from_wire(value)
