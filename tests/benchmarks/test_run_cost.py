"""The table of run costs, and one real sample of each kind."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.scripts import load

run_cost = load("run_cost")
Cost, Step = run_cost.Cost, run_cost.Step

MODEL = """
import torch
print("programs print")
class Model(torch.nn.Module):
    def forward(self, x):
        return x.sin() + 1
def get_inputs():
    return [torch.randn(4)]
"""


def test_the_table_shows_medians_and_ratios_to_torch_alone():
    costs = {
        Step.GENERATE: [Cost(3.0, 2.0, 9.0), Cost(3.0, 4.0, 9.0), Cost(3.0, 2.0, 9.0)],
        Step.LOWER: [Cost(3.0, 3.0, 9.0)],
    }
    [_, generate, lower] = run_cost.table("model.py", costs).splitlines()
    assert generate.split() == ["generate", "3", "3.00", "2.00", "9.00", "1.00"]
    assert lower.split() == ["lower", "1", "3.00", "3.00", "9.00", "1.50"]


def test_without_torch_alone_there_are_no_ratios():
    [_, lower] = run_cost.table("model.py", {Step.LOWER: [Cost(3.0, 3.0, 9.0)]}).splitlines()
    assert lower.split()[-1] == "-"


def test_the_machine_and_the_versions_are_told():
    assert "torch" in run_cost.machine() and "cores" in run_cost.machine()


@pytest.mark.slow
@pytest.mark.parametrize("step", [Step.EAGER, Step.GENERATE, Step.LOWER])
def test_a_sample_is_made_in_a_process_of_its_own(step, tmp_path: Path):
    file = tmp_path / "model.py"
    file.write_text(MODEL)
    cost = run_cost.in_process(step, file, "cpu")
    assert cost.start > 0 and cost.cpu > 0 and cost.wall > 0


@pytest.mark.slow
def test_a_program_that_fails_is_told_of(tmp_path: Path):
    file = tmp_path / "model.py"
    file.write_text(MODEL.replace("x.sin() + 1", "x.no_such_method()"))
    with pytest.raises(run_cost.SampleError, match="no_such_method"):
        run_cost.in_process(Step.CAPTURE, file, "cpu")
