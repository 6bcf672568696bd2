"""Phases of real runs: they add up, lie inside each other, and agree with what torch itself measured."""

from __future__ import annotations

import time
from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")

from inductoscope.compiler.capture import Capture  # noqa: E402
from inductoscope.compiler.compat import dynamo_trace, phase_events  # noqa: E402
from inductoscope.compiler.lower import Backward, Depth, Lowering  # noqa: E402
from inductoscope.compiler.timeline import Timeline  # noqa: E402
from inductoscope.compiler.usercode import UserCode  # noqa: E402
from inductoscope.protocol.messages import Run, Target, TargetKind  # noqa: E402
from inductoscope.protocol.report import PhaseTime, Rung, TargetReport  # noqa: E402
from inductoscope.server.targets import scan  # noqa: E402
from support.raw_worker import do  # noqa: E402

pytestmark = pytest.mark.slow

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.py"))
ROUNDING_MS = 0.01
BETWEEN = 0.05
"""The share of a run that may lie between its phases: messages, and Python going from one step to the next."""


def check_structure(report: TargetReport) -> None:
    phases = report.phases
    inside: defaultdict[int | None, list[PhaseTime]] = defaultdict(list)
    for index, phase in enumerate(phases):
        inside[phase.parent].append(phase)
        if phase.parent is not None:
            assert phase.parent < index
            around = phases[phase.parent]
            assert phase.start_ms >= around.start_ms
            assert phase.start_ms + phase.ms <= around.start_ms + around.ms + ROUNDING_MS
            assert around.graph in (None, phase.graph) or phase.name == "compile", (phase, around)
    for index, phase in enumerate(phases):
        parts = inside[index]
        assert sum(part.ms for part in parts) <= phase.ms + ROUNDING_MS * (1 + len(parts))
    assert (1 - BETWEEN) * report.run_ms <= sum(phase.ms for phase in inside[None]) <= report.run_ms + ROUNDING_MS
    assert {"import", "inputs", "drive"} <= {phase.name for phase in inside[None]}


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_the_phases_of_every_example_add_up(file: Path):
    target = scan(file.read_text(encoding="utf-8"), str(file)).targets[0].target
    report = do(Run(1, target, "sim:H200", Rung.LOWER)).report
    check_structure(report)
    compiled = {phase.graph for phase in report.phases if phase.name == "compile"}
    assert {graph.id for graph in report.graphs} <= compiled
    lowered = {phase.graph for phase in report.phases if phase.name == "lowering"}
    assert {kernel.graph for kernel in report.kernels} <= lowered


def test_the_phases_are_those_of_torchs_own_account(monkeypatch: pytest.MonkeyPatch):
    """Both count the processor time of this thread here: what else the machine does falls between their clocks."""
    torch.compiler.reset()
    processor_time = SimpleNamespace(**{**vars(time), "time_ns": time.thread_time_ns})
    monkeypatch.setattr("torch._dynamo.utils.time", processor_time)
    timeline = Timeline(time.thread_time)
    told: dict[str, dict[str, float]] = {}

    def hear(record: dynamo_trace.Record) -> None:
        if record.name == "compilation_metrics" and record.compile_id and record.fields.get("is_forward") is not False:
            told[record.compile_id] = dict(record.fields)

    @torch.compile
    def step(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.layer_norm(x @ w, (64,)).relu().sum()

    code = UserCode(also=(__file__,))
    target = Target(__file__, "step", 1, TargetKind.FUNCTION, "step")
    watch = Capture(code, target, lambda _: None, timeline=timeline)
    lowering = Lowering(code, "cpu", Depth.KERNELS, Backward.ALWAYS, timeline)
    w = torch.randn(64, 64, requires_grad=True)
    with watch, lowering, dynamo_trace.trace_records(hear):
        for size in (8, 16):
            step(torch.randn(size, 64), w).backward()

    assert set(told) == {"0/0", "0/1"}
    for graph, fields in told.items():
        ours: defaultdict[str, float] = defaultdict(float)
        for phase in timeline.phases():
            if phase.graph == graph:
                ours[phase.name] += phase.ms
        same = {
            "compile": fields["entire_frame_compile_time_s"] * 1e3,
            "backend": fields["backend_compile_time_s"] * 1e3,
            "code generation": fields["code_gen_time_s"] * 1e3,
            "pre-grad passes": fields["pre_grad_pass_time_us"] / 1e3,
            "joint passes": fields["joint_graph_pass_time_us"] / 1e3,
            "post-grad passes": fields["post_grad_pass_time_us"] / 1e3,
        }
        assert {name: ours[name] for name in same} == pytest.approx(same, rel=0.05, abs=1.0)
        inductor = fields["inductor_compile_time_s"] * 1e3
        assert ours["inductor"] + ours["inductor backward"] >= inductor * 0.99
        assert ours["lowering"] + ours["code generation"] <= inductor


def test_torch_tells_of_its_phases():
    assert all(point.exists() for point in phase_events.ALL_POINTS)
