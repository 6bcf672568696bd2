"""Graphs as code, and what a training step keeps, as text for people."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from rich.console import Console

from inductoscope.protocol.report import (
    FxGraph,
    FxNode,
    Graph,
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
from inductoscope.server import fx_code
from inductoscope.server.text import report as text_of
from inductoscope.server.text.view import Part, View

FILE, LIB = "/work/model.py", "/work/lib.py"
REPORT = TargetReport(FILE, "f", 12, "cpu", Rung.LOWER, Status.COMPILED, graphs=(Graph("0/0", "f", FILE, 12, 2),))
NODES = (
    FxNode("l_x_", "placeholder", "L_x_", "", "f32[4, 128]", "cpu", source="self.x"),
    FxNode("relu", "call_function", "torch.relu", "l_x_", "f32[4, 128]", "cpu", FILE, 14),
    FxNode("view", "call_method", "view", "relu, -1", "f32[512]", "cpu", LIB, 3),
    FxNode("output", "output", "output", "(view,)"),
)


def shown(report: TargetReport, *parts: Part) -> str:
    view = View(frozenset(parts), Path("/work"), lambda file, line: "")
    console = Console(width=110, color_system=None, force_terminal=False, markup=False, highlight=False)
    with console.capture() as capture:
        console.print(text_of.target(report, view), crop=False)
    return "\n".join(line.rstrip() for line in capture.get().split("\n"))


def graph(stage: Stage, phase: Phase = Phase.FORWARD, of: str = "0/0", **changes: object) -> FxGraph:
    return dataclasses.replace(FxGraph(of, stage, phase, 2, NODES), **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("op", "target", "args", "expected"),
    [
        ("call_function", "torch.ops.aten.add.Tensor", "a, 1", "torch.ops.aten.add.Tensor(a, 1)"),
        ("call_function", "operator.getitem", "a, 0", "a[0]"),
        ("call_function", "operator.getitem", "a, (0, None)", "operator.getitem(a, (0, None))"),
        ("call_function", "operator.add", "a, b", "a + b"),
        ("call_function", "operator.add", "(a, b), (c,)", "operator.add((a, b), (c,))"),
        ("call_function", "operator.neg", "a", "operator.neg(a)"),
        ("call_method", "view", "a, 2, -1", "a.view(2, -1)"),
        ("call_method", "t", "a", "a.t()"),
        ("call_module", "inner", "a, b", "self.inner(a, b)"),
        ("get_attr", "weight", "", "self.weight"),
    ],
)
def test_a_node_reads_as_python(op: str, target: str, args: str, expected: str) -> None:
    made = graph(Stage.CAPTURED, nodes=(FxNode("y", op, target, args, "f32[2]", "cpu"),))
    assert [line.text for line in fx_code.code(made)] == ["def forward():", f'    y: "f32[2]" = {expected}']


def test_the_device_is_written_where_there_are_several() -> None:
    moved = dataclasses.replace(NODES[1], device="cuda:0")
    lines = [line.text for line in fx_code.code(graph(Stage.LOWERED, nodes=(NODES[0], moved)))]
    assert lines[1:] == [
        '    l_x_: "f32[4, 128] cpu",  # self.x',
        "):",
        '    relu: "f32[4, 128] cuda:0" = torch.relu(l_x_)',
    ]


def test_only_a_captured_graph_calls_its_inputs_what_the_program_does() -> None:
    nodes = (NODES[0], FxNode("y", "call_method", "add", "l_x_, l_x_2"), FxNode("z", "get_attr", "l_x_", ""))
    captured, lowered = (list(fx_code.code(graph(stage, nodes=nodes))) for stage in (Stage.CAPTURED, Stage.LOWERED))
    assert [line.text for line in captured[3:]] == ["    y = self.x.add(l_x_2)", "    z = self.l_x_"]
    assert [line.text for line in lowered[3:]] == ["    y = l_x_.add(l_x_2)", "    z = self.l_x_"]


def test_an_input_keeps_its_name_where_another_value_has_the_programs() -> None:
    source = dataclasses.replace(NODES[0], source="y")
    nodes = (source, FxNode("y", "call_method", "add", "l_x_, 1"), FxNode("z", "call_method", "mul", "y, l_x_"))
    lines = [line.text for line in fx_code.code(graph(Stage.CAPTURED, nodes=nodes))]
    assert lines[3:] == ["    y = l_x_.add(1)", "    z = y.mul(l_x_)"]


def test_short_names_of_operators() -> None:
    assert fx_code.operator(FxNode("a", "call_function", "torch.ops.aten.add.Tensor", "")) == "aten.add"
    assert fx_code.operator(FxNode("a", "call_function", "torch._C._nn.linear", "")) == "linear"
    assert fx_code.operator(FxNode("a", "call_method", "view", "")) == "view"


def test_graphs_have_the_programs_lines_in_the_margin() -> None:
    text = shown(dataclasses.replace(REPORT, fx_graphs=(graph(Stage.CAPTURED),)), Part.GRAPHS)
    assert (
        "  graph 0/0, as Dynamo captured it: 2 ops\n"
        "         | def forward(\n"
        '         |     l_x_: "f32[4, 128]",  # self.x\n'
        "         | ):\n"
        '      14 |     relu: "f32[4, 128]" = torch.relu(self.x)\n'
        'lib.py:3 |     view: "f32[512]" = relu.view(-1)\n'
        "         |     return (view,)\n"
    ) in text


def test_without_being_asked_for_no_graph_is_shown() -> None:
    assert "def forward" not in shown(dataclasses.replace(REPORT, fx_graphs=(graph(Stage.CAPTURED),)))


def test_stages_in_between_backward_and_recompiles_are_named_until_everything_is_asked_for() -> None:
    stages = (graph(Stage.CAPTURED), graph(Stage.JOINT), graph(Stage.LOWERED), graph(Stage.LOWERED, Phase.BACKWARD))
    report = dataclasses.replace(REPORT, fx_graphs=(*stages, graph(Stage.CAPTURED, of="0/1")))
    text = shown(report, Part.GRAPHS)
    assert text.count("def forward(") == 2
    assert "graphs not shown (--show all): 0/0 joint, 2 ops; 0/0 lowered backward, 2 ops; 0/1 captured, 2 ops" in text
    assert shown(report, Part.GRAPHS, Part.BACKWARD).count("def forward(") == 3
    assert shown(report, Part.ALL).count("def forward(") == 5


def test_a_graph_that_is_too_large_says_so() -> None:
    report = dataclasses.replace(REPORT, fx_graphs=(graph(Stage.CAPTURED, nodes=(), ops=9, left_out=12),))
    assert "graph 0/0, as Dynamo captured it: 9 ops\n       | # 12 nodes: too large to be listed" in shown(
        report, Part.GRAPHS
    )


def saved(name: str, kind: SavedKind, size: int | None, line: int | None = None, **changes: object) -> SavedTensor:
    made = SavedTensor("0/0", name, kind, "f32[256]", size, None if line is None else "aten.relu", FILE, line)
    return dataclasses.replace(made, **changes)  # type: ignore[arg-type]


TRAINS = dataclasses.replace(
    REPORT,
    saved=(
        saved("primals_1", SavedKind.INPUT, 2048, source="self.weight"),
        saved("relu", SavedKind.ACTIVATION, 1024, 14),
        saved("relu_1", SavedKind.ACTIVATION, 1024, 14),
        saved("view", SavedKind.ACTIVATION, 1024, 15, base="relu"),
        saved("s0", SavedKind.SIZE, None, text="s77=4"),
        saved("relu", SavedKind.ACTIVATION, 4096, 14, graph="0/1"),
    ),
    recomputed=(
        Recomputation("0/0", "erf", "aten.erf", RecomputeReason.PARTITIONER, "f32[8]", False, FILE, 16),
        Recomputation("0/0", "erf_1", "aten.erf", RecomputeReason.PARTITIONER, "f32[8]", False, FILE, 16),
        Recomputation("0/0", "t", "aten.permute", RecomputeReason.PARTITIONER, "f32[8]", True, FILE, 16),
        Recomputation("0/0", "tanh", "aten.tanh", RecomputeReason.CHECKPOINT, "f32[8]", False, LIB, 3),
    ),
)


def test_the_header_sums_up_what_is_kept_in_the_first_version() -> None:
    text = " ".join(shown(TRAINS).split())
    assert "saves 4 tensors, 4 KiB for the backward pass, 2 KiB of that in inputs and parameters" in text
    assert "; recomputes 3 ops and 1 view" in text


def test_what_is_kept_and_computed_again_stands_by_line() -> None:
    text = shown(TRAINS, Part.BACKWARD)
    rows = [" ".join(line.split()) for line in text.split("\n")]
    assert "14 relu x2 f32[256] 1 KiB" in rows
    assert "15 relu f32[256] 1 KiB" in rows
    assert "besides: 1 input, parameter or view of one, 2 KiB, alive anyway: self.weight" in rows
    assert "besides: 1 size (s77=4)" in rows
    assert "16 erf x2, permute (a view) torch: cheaper than reading the result" in rows
    assert "lib.py:3 tanh the program (checkpoint)" in rows
