"""Graphs in the editor: documents of code that lead back to the program, and what a hover says of a line."""

from __future__ import annotations

import dataclasses

from inductoscope.protocol.messages import Target, TargetKind
from inductoscope.protocol.report import (
    FxGraph,
    FxNode,
    Phase,
    Recomputation,
    RecomputeReason,
    Rung,
    SavedKind,
    SavedTensor,
    Stage,
    Status,
    TargetReport,
)
from inductoscope.server.extensions import ARTIFACT_SCHEME
from inductoscope.server.features import artifacts, graph_documents, operators
from inductoscope.server.features.markup import Markup, write
from inductoscope.server.snapshot import TargetView
from inductoscope.server.targets import ScannedTarget

FILE = "/w/model.py"
VIEW = TargetView(ScannedTarget(Target(FILE, "f", 1, TargetKind.FUNCTION, "f"), "comment"))


def call(name: str, target: str, line: int | None, args: str = "x", text: str | None = "f32[4]") -> FxNode:
    return FxNode(name, "call_function", target, args, text, "cpu", FILE if line else None, line)


INPUT = FxNode("x", "placeholder", "L_x_", "", "f32[4]", "cpu")
RESULT = FxNode("output", "output", "output", "(relu,)")
CAPTURED = FxGraph("0/0", Stage.CAPTURED, Phase.FORWARD, 2, (INPUT, call("relu", "torch.relu", 7), RESULT))
BODY = FxGraph("0/0", Stage.CAPTURED, Phase.FORWARD, 1, (call("sin", "torch.sin", 3),), "wrap_body_0")
LOWERED = FxGraph(
    "0/0",
    Stage.LOWERED,
    Phase.FORWARD,
    3,
    (
        INPUT,
        call("var_mean", "torch.ops.aten.var_mean.correction", 7, text="(f32[1], f32[1])"),
        call("getitem", "operator.getitem", 7, "var_mean, 0", "f32[1]"),
        call("mul", "torch.ops.aten.mul.Tensor", 7),
        call("mul_1", "torch.ops.aten.mul.Tensor", 7),
        call("copy_", "torch.ops.aten.copy_.default", None),
        RESULT,
    ),
)
BACKWARD = FxGraph("0/0", Stage.LOWERED, Phase.BACKWARD, 1, (call("le", "torch.ops.aten.le.Scalar", 7),))
REPORT = TargetReport(FILE, "f", 1, "cpu", Rung.LOWER, Status.COMPILED, fx_graphs=(CAPTURED, BODY, LOWERED, BACKWARD))


def hovered(report: TargetReport, line: int) -> list[str]:
    text = write(operators.cards(VIEW, report, FILE, line), Markup.PLAIN)
    return [one for one in text.split("\n") if one and ARTIFACT_SCHEME not in one]


def test_each_graph_and_stage_is_a_document_and_bodies_stand_with_their_graph() -> None:
    assert [document.name for document in graph_documents.listed(REPORT)] == [
        "graph 0_0 captured.py",
        "graph 0_0 after passes.py",
        "graph 0_0 backward after passes.py",
    ]
    captured = graph_documents.find(REPORT, "graph 0_0 captured.py")
    assert captured is not None
    assert graph_documents.text(captured) == (
        "# graph 0/0, as Dynamo captured it: 2 operators\n"
        "def forward(\n"
        '    x: "f32[4]",\n'
        "):\n"
        '    relu: "f32[4]" = torch.relu(x)  # model.py:7\n'
        "    return (relu,)\n"
        "\n"
        "# graph 0/0, body wrap_body_0, as Dynamo captured it: 1 operator\n"
        "def forward():\n"
        '    sin: "f32[4]" = torch.sin(x)  # model.py:3\n'
    )


def test_a_line_of_a_document_leads_back_to_the_program() -> None:
    captured = graph_documents.find(REPORT, "graph 0_0 captured.py")
    assert captured is not None
    lines = graph_documents.text(captured).split("\n")
    origins = {lines[at - 1].strip(): graph_documents.origin(captured, at) for at in range(1, len(lines) + 1)}
    assert {text.partition(":")[0]: place for text, place in origins.items() if place} == {
        "relu": (FILE, 7),
        "sin": (FILE, 3),
    }


def test_the_address_of_a_graph_is_read_back() -> None:
    document = graph_documents.listed(REPORT)[1]
    address = artifacts.parse(artifacts.graph_address(VIEW, document).uri)
    assert address is not None and graph_documents.find(REPORT, address.name) == document


def test_a_hover_names_the_operators_of_a_line_stage_by_stage_with_links() -> None:
    assert hovered(REPORT, 7) == [
        "Operators of this line",
        "- captured: relu f32[4]",
        "- after Inductor's passes: aten.var_mean (f32[1], f32[1]), aten.mul f32[4] x2",
        "- backward, after Inductor's passes: aten.le f32[4]",
    ]
    text = write(operators.cards(VIEW, REPORT, FILE, 7), Markup.PLAIN)
    assert all(artifacts.graph_address(VIEW, one).uri in text for one in graph_documents.listed(REPORT))
    assert hovered(REPORT, 8) == []


def test_what_recompiles_made_is_not_told_again() -> None:
    again = dataclasses.replace(CAPTURED, graph="0/1")
    assert hovered(dataclasses.replace(REPORT, fx_graphs=(CAPTURED, again)), 7)[1:] == ["- captured: relu f32[4]"]


def test_a_hover_says_what_is_kept_and_what_is_computed_again() -> None:
    trains = dataclasses.replace(
        REPORT,
        fx_graphs=(),
        saved=(
            SavedTensor("0/0", "relu", SavedKind.ACTIVATION, "f32[4, 128]", 2048, "aten.relu", FILE, 7),
            SavedTensor("0/0", "view", SavedKind.ACTIVATION, "f32[512]", 2048, "aten.view", FILE, 8, "relu"),
            SavedTensor("0/0", "primals_1", SavedKind.INPUT, "f32[4]", 16),
        ),
        recomputed=(
            Recomputation("0/0", "mul", "aten.mul", RecomputeReason.PARTITIONER, "f32[4]", False, FILE, 7),
            Recomputation("0/0", "mul_1", "aten.mul", RecomputeReason.PARTITIONER, "f32[4]", False, FILE, 7),
            Recomputation("0/0", "t", "aten.permute", RecomputeReason.CHECKPOINT, "f32[4]", True, FILE, 7),
        ),
    )
    assert hovered(trains, 7) == [
        "Kept for the backward pass",
        "- f32[4, 128], 2 KiB (aten.relu)",
        "Computed again in the backward pass",
        "- aten.mul x2: torch found that cheaper than keeping the result",
        "- aten.permute (a view): the program asks for it (checkpoint)",
    ]
    assert hovered(trains, 8) == ["Kept for the backward pass", "- f32[512], 2 KiB, a view of relu (aten.view)"]
