"""The shape probe as a part of a run: on the CPU and on a simulated GPU, and where there is none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from inductoscope.protocol.messages import RungDone, TargetKind
from inductoscope.protocol.report import ProbeOutcome, Rung
from support.raw_worker import a_run, do

pytestmark = pytest.mark.slow

PROGRAM = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(16, 16)
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, x, mask):
        self.calls.add_(1)
        y = self.linear(x) * mask.unsqueeze(-1)
        if y.sum() > 1000:
            y = y + 1
        return y


def get_inputs():
    return [torch.randn(4, 8, 16), torch.ones(4, 8)]
"""


@pytest.mark.parametrize(("device", "rung"), [("cpu", Rung.LOWER), ("sim:H200", Rung.LOWER)])
def test_other_sizes_are_told_last_and_change_nothing_else(device: str, rung: Rung, tmp_path: Path) -> None:
    file = tmp_path / "model.py"
    file.write_text(PROGRAM.lstrip("\n"))
    run = a_run(file, kind=TargetKind.MODULE_CLASS, rung=rung, device=device)
    talk = do(replace(run, probe_seconds=100.0))
    probes = {(one.source, one.dim): one for one in talk.report.probes}
    assert (probes["x", 0].outcome, probes["x", 0].together) == (ProbeOutcome.DYNAMIC, ("mask.shape[0]",))
    assert (probes["x", 1].outcome, probes["x", 1].together) == (ProbeOutcome.DYNAMIC, ("mask.shape[1]",))
    assert probes["x", 2].outcome is ProbeOutcome.FAILS
    before = [one for one in talk.messages if isinstance(one, RungDone)][-1].report
    told = replace(talk.report, probes=(), phases=before.phases, run_ms=before.run_ms)
    assert told == before, "everything else was told before other sizes were tried"


@pytest.mark.parametrize("inputs", ["exercise", "two sets", "it fails"])
def test_what_is_no_single_call_is_not_tried(inputs: str, tmp_path: Path) -> None:
    more = {
        "exercise": "def exercise(fn):\n    fn(torch.ones(4, 8, 16), torch.ones(4, 8))\n",
        "two sets": "def get_input_sets():\n    return [get_inputs(), get_inputs()]\n",
        "it fails": "def get_inputs():\n    return [torch.ones(4, 8, 17), torch.ones(4, 8)]\n",
    }
    file = tmp_path / "model.py"
    file.write_text(PROGRAM.lstrip("\n") + "\n\n" + more[inputs])
    run = replace(a_run(file, kind=TargetKind.MODULE_CLASS, rung=Rung.CAPTURE), probe_seconds=100.0)
    assert do(run).report.probes == ()
