from dataclasses import replace

import pytest

from inductoscope.compiler import device_findings, merge, resource_findings
from inductoscope.compiler.capture import CaptureFacts
from inductoscope.compiler.lower import LowerFacts
from inductoscope.compiler.merge import Facts
from inductoscope.protocol.messages import Target, TargetKind
from inductoscope.protocol.report import (
    DeviceSync,
    Finding,
    FxGraph,
    Graph,
    GraphBreak,
    InputSet,
    Kernel,
    KernelLanguage,
    Outcome,
    Phase,
    Place,
    Predicted,
    RecompileLimit,
    Resources,
    Rung,
    Severity,
    SkippedFrame,
    Stage,
    Status,
)

TARGET = Target("/p/model.py", "f", 3, TargetKind.FUNCTION, "f")
GRAPH = Graph("0/0", "f", "/p/model.py", 3, 2)
BREAK = GraphBreak("/p/model.py", 5, 5, 0, 1, "GB0059", "a print", "", (), None, (), Outcome.SPLIT)
CALLED = (InputSet("get_inputs", ("f32[2]",)),)


def is_user(file: str) -> bool:
    return file.startswith("/p/")


def found(code: str = "compile-error", line: int = 5, message: str = "fails") -> Finding:
    return Finding(code, Severity.ERROR, "/p/model.py", line, 0, line, 1, message, Rung.CAPTURE)


@pytest.mark.parametrize(
    ("facts", "status", "words"),
    [
        (Facts(CaptureFacts(graphs=(GRAPH,)), inputs=CALLED), Status.COMPILED, None),
        (Facts(CaptureFacts(graphs=(GRAPH,), breaks=(BREAK,)), inputs=CALLED), Status.PARTIAL, None),
        (
            Facts(CaptureFacts(graphs=(GRAPH,), recompile_limit=RecompileLimit(8, "f", "", 1)), inputs=CALLED),
            Status.PARTIAL,
            None,
        ),
        (Facts(CaptureFacts(graphs=(GRAPH,), findings=(found(),)), inputs=CALLED), Status.FAILED, "fails"),
        (Facts(CaptureFacts(findings=(found("graph-break"),), breaks=(BREAK,))), Status.FAILED, "fails"),
        (Facts(), Status.EAGER, "nothing was called"),
        (Facts(CaptureFacts(breaks=(BREAK,)), inputs=CALLED), Status.EAGER, "a print (line 5)"),
        (
            Facts(CaptureFacts(skipped=(SkippedFrame("f", "/p/model.py", 3, "a generator"),)), inputs=CALLED),
            Status.EAGER,
            "Dynamo skipped f: a generator",
        ),
        (Facts(inputs=CALLED, compiling_is_off=True), Status.EAGER, "TORCH_COMPILE_DISABLE"),
        (Facts(inputs=CALLED), Status.EAGER, "no tensor operation"),
    ],
)
def test_the_status_follows_from_the_facts(facts: Facts, status: Status, words: str | None) -> None:
    report = merge.report(TARGET, "cpu", Rung.LOWER, facts, is_user)
    assert report.status is status
    assert words in report.message if words else report.message is None


def test_what_could_not_be_read_is_a_note_and_no_failure_of_the_program() -> None:
    facts = Facts(CaptureFacts(graphs=(GRAPH,)), LowerFacts(problems=("cannot read graph 0/0",)), CALLED)
    report = merge.report(TARGET, "cpu", Rung.LOWER, facts, is_user)
    assert (report.status, report.notes) == (Status.COMPILED, ("cannot read graph 0/0",))


def test_one_error_seen_by_two_observers_is_one_finding() -> None:
    seen = (found(message="Dynamo: no kernel"), found(message="Inductor: no kernel"), found(line=9))
    assert [finding.message for finding in merge.distinct(seen)] == ["Dynamo: no kernel", "fails"]


def test_other_findings_of_one_line_stay_apart_and_stand_in_order_of_line() -> None:
    seen = (
        found("recompile", 7, "size"),
        found("recompile", 7, "dtype"),
        found("graph-break", 2),
        found("recompile", 7, "size"),
    )
    assert [finding.line for finding in merge.distinct(seen)] == [2, 7, 7]


def test_looks_at_device_values_are_findings_with_value_and_count() -> None:
    waits, guess = device_findings.of_syncs(
        (
            DeviceSync("/p/model.py", 4, "item", "0.73", False, 3),
            DeviceSync("/p/model.py", 6, "bool", "False", True, 1, "it would take 3e12 operations"),
        )
    )
    assert (waits.code, waits.line, waits.count) == ("device-sync", 4, 3)
    assert "item" in waits.message
    assert "0.73" in waits.message
    assert "3 times" in waits.message
    assert (guess.code, guess.line) == ("guessed-value", 6)
    assert "3e12 operations" in guess.message
    assert "assumes False" in guess.message


KERNEL = Kernel(
    "triton_0", KernelLanguage.TRITON, Phase.FORWARD, "0/0", "tl.load(x)", (Place("/p/model.py", 8, "f"),),
    resources=Resources(32, 0, 0, 1.0), predicted=Predicted(100.0, "memory", "model"),
)  # fmt: skip


def _codes(kernel: Kernel) -> list[tuple[str, int]]:
    return [(finding.code, finding.line) for finding in resource_findings.of_kernels([kernel, kernel])]


def test_only_spills_that_cost_time_are_told_and_once_a_kernel() -> None:
    assert _codes(replace(KERNEL, resources=Resources(255, 8, 0, 1.0))) == []
    assert _codes(replace(KERNEL, resources=Resources(255, 64, 0, 1.0))) == [("register-spill", 8)]


def test_low_occupancy_is_told_of_long_kernels_without_matrix_tiles() -> None:
    few = replace(KERNEL, resources=Resources(255, 0, 0, 0.125, "registers"))
    assert _codes(few) == [("low-occupancy", 8)]
    assert _codes(replace(few, predicted=Predicted(5.0, "floor", "model"))) == []
    assert _codes(replace(few, source="tl.dot(a, b)")) == []
    assert _codes(replace(few, lines=())) == []


def test_what_has_only_a_line_of_a_library_is_told_at_the_target() -> None:
    mine, theirs = found(line=5), replace(found("library-kernel"), file="/lib/layers.py", line=70)
    report = merge.report(TARGET, "cpu", Rung.LOWER, Facts(lower=LowerFacts(findings=(mine, theirs))), is_user)
    assert [(one.code, one.file, one.line) for one in report.findings] == [
        ("library-kernel", "/p/model.py", 3),
        ("compile-error", "/p/model.py", 5),
    ]
    assert [(one.file, one.line) for one in report.findings[0].related] == [("/lib/layers.py", 70)]


def test_each_backward_graph_stands_with_the_captured_one_that_it_was_made_of() -> None:
    cut = FxGraph("0/0", Stage.PARTITIONED, Phase.BACKWARD, 7, ())
    lowered = replace(cut, stage=Stage.LOWERED, ops=6)
    inner, orphan = replace(cut, body="wrap_body_0", ops=1), replace(cut, graph="9/0")
    facts = Facts(CaptureFacts(graphs=(GRAPH,)), LowerFacts(fx_graphs=(cut, lowered, inner, orphan)), inputs=CALLED)
    report = merge.report(TARGET, "cpu", Rung.LOWER, facts, is_user)
    assert report.graphs == (GRAPH, Graph("0/0", "f", "/p/model.py", 3, 7, Phase.BACKWARD))


def test_graphs_that_are_too_large_to_be_listed_are_noted() -> None:
    large = FxGraph("0/0", Stage.JOINT, Phase.FORWARD, 5000, (), left_out=5100)
    facts = Facts(CaptureFacts(graphs=(GRAPH,)), LowerFacts(fx_graphs=(large,)), inputs=CALLED)
    [note] = merge.report(TARGET, "cpu", Rung.LOWER, facts, is_user).notes
    assert note == "Too large to be listed node by node: 0/0 joint forward (5100 nodes)."
