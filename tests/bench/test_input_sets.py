"""Several sets of inputs, and a mode in place of the file's own, through a real worker."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from inductoscope.protocol.bench import BenchOptions, Passes
from inductoscope.protocol.messages import Target, TargetKind
from inductoscope.protocol.report import Rung, TargetReport
from inductoscope.server.workers import RunRequest, Spare, WorkerPool

pytestmark = pytest.mark.slow

MODEL = """
import torch

BACKEND = "eager"
ENTRY = "Model"

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(8))

    def forward(self, x):
        return torch.sin(x) * self.scale

def get_input_sets():
    return [(torch.randn(4, 8),), (torch.randn(2, 8),), (torch.randn(4, 7),)]
"""


async def measured(folder: Path, bench: BenchOptions) -> TargetReport:
    file = folder / "model.py"
    file.write_text(MODEL)
    target = Target(str(file), "Model.forward", 12, TargetKind.MODULE_CLASS, "Model")
    pool = WorkerPool(sys.executable, spare=Spare.NONE)
    try:
        request = RunRequest(target, "cpu", Rung.MEASURE, bench_seconds=0.05, bench=bench)
        outcome = await pool.run(request, lambda message: None)
    finally:
        await pool.close()
    assert outcome.failure is None
    return outcome.report


async def test_each_set_is_measured_and_one_that_fails_says_that_the_program_may_be_made_for_others(tmp_path):
    report = await measured(tmp_path, BenchOptions(passes=Passes.BOTH))
    first, (second, third) = report.benchmark, report.benchmarks
    assert [one.inputs for one in (first, second, third)] == [("f32[4, 8]",), ("f32[2, 8]",), ("f32[4, 7]",)]
    assert first.compiled is not None
    assert second.compiled is not None
    assert "With (f32[4, 7]): The eager program raised RuntimeError" in third.refused
    assert "It runs with the first inputs (f32[4, 8]), so it may be written for those sizes alone." in third.refused
    assert "gradient of scale" in [output.name for output in first.outputs]
    assert "forward and backward pass" in first.method
    assert first.kernels is not None
    assert second.kernels is None


async def test_no_more_sets_are_measured_than_were_asked_for(tmp_path):
    report = await measured(tmp_path, BenchOptions(input_sets=1))
    assert report.benchmarks == ()
    assert len(report.inputs) == 1
