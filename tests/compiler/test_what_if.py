"""Would other inputs compile again?  Against torch itself: each answer is compared with what a second program does."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest

from inductoscope.protocol.messages import TargetKind
from inductoscope.protocol.report import Reuse, Rung
from support.raw_worker import a_run, do

pytestmark = pytest.mark.slow

PROGRAM = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x, index, scale=2.0, flag=True):
        y = self.linear(x) * scale
        if x.shape[0] < 100 and flag:
            y = y - 1
        print("splits the graph")
        if index.shape[0] == 6:
            y = y + index.sum()
        return y


def get_input_sets():
    return [(torch.randn(12, 8), torch.randn(6, 2)), (torch.randn(24, 8), torch.randn(6, 2))]
"""
GUARDED, BOUNDED, SECOND = 11, 12, 15

ASKED = {
    "x=f32[48, 8]": ("model(torch.randn(48, 8), torch.randn(6, 2))", Reuse.REUSED, None),
    "x=f32[200, 8]": ("model(torch.randn(200, 8), torch.randn(6, 2))", Reuse.RECOMPILES, BOUNDED),
    "x=f64[24, 8]": ("model(torch.randn(24, 8).double(), torch.randn(6, 2))", Reuse.RECOMPILES, GUARDED),
    "index=f32[7, 2]": ("model(torch.randn(24, 8), torch.randn(7, 2))", Reuse.RECOMPILES, SECOND),
    "flag=False": ("model(torch.randn(12, 8), torch.randn(6, 2), flag=False)", Reuse.RECOMPILES, BOUNDED),
    "scale=3.0": ("model(torch.randn(12, 8), torch.randn(6, 2), 3.0)", Reuse.RECOMPILES, GUARDED),
}
"""What is asked, the same call in Python, the answer, and the line of the newest version's failing guard."""

TRIAL = """
import sys, torch, program
from torch._dynamo.utils import counters
for text in sys.argv[1:]:
    torch._dynamo.reset()
    model = torch.compile(program.Model(), backend="eager")
    for call in program.get_input_sets():
        model(*call)
    before = counters["stats"]["unique_graphs"]
    try:
        eval(text)
    except RuntimeError:  # numbers of two types, found only while it is compiled again
        before = -1
    print("ANSWER", counters["stats"]["unique_graphs"] != before)
"""


def test_answers_are_what_torch_does_and_name_the_line(tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    file.write_text(PROGRAM.lstrip("\n"))
    run = replace(a_run(file, "Model", kind=TargetKind.MODULE_CLASS, rung=Rung.CAPTURE), what_if=tuple(ASKED))
    report = do(run).report
    found = {
        text: (one.outcome, one.guards[0].line if one.guards else None)
        for text, one in zip(ASKED, report.what_if, strict=True)
    }
    assert found == {text: (outcome, line) for text, (_, outcome, line) in ASKED.items()}
    assert len(report.inputs) == 2  # the questions are no calls of the program
    calls = [call for call, _, _ in ASKED.values()]
    assert compiled_again(tmp_path, calls) == [outcome is Reuse.RECOMPILES for _, outcome, _ in ASKED.values()]


BUFFERED = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("past", torch.ones(64, 64))
        self.seen = None

    def forward(self, x, batch, steps=2):
        length = x.shape[1]
        scores = x @ x.transpose(1, 2) + self.past[:length, :length]
        self.seen = scores
        for _ in range(steps):
            scores = scores * 2
        return scores * batch["mask"].unsqueeze(1) + batch["shift"]


def get_input_sets():
    shift = torch.zeros(1)
    return [
        (torch.randn(b, t, 16), {"mask": torch.ones(b, t), "shift": shift}) for b, t in ((4, 8), (6, 8), (6, 12))
    ]
"""

COMBINED = {
    "x=f32[9, 20, 16], batch={'mask': f32[9, 20], 'shift': f32[1]}": (
        "model(torch.randn(9, 20, 16), {'mask': torch.ones(9, 20), 'shift': torch.zeros(1)})",
        Reuse.REUSED,
    ),
    "x=f32[9, 65, 16], batch={'mask': f32[9, 65], 'shift': f32[1]}": (
        "model(torch.randn(9, 65, 16), {'mask': torch.ones(9, 65), 'shift': torch.zeros(1)})",
        Reuse.RECOMPILES,
    ),
    "x=f32[9, 20, 32], batch={'mask': f32[9, 20], 'shift': f32[1]}": (
        "model(torch.randn(9, 20, 32), {'mask': torch.ones(9, 20), 'shift': torch.zeros(1)})",
        Reuse.RECOMPILES,
    ),
    "x=f32[6, 12, 16], batch={'mask': f32[6, 12], 'shift': f32[12]}": (
        "model(torch.randn(6, 12, 16), {'mask': torch.ones(6, 12), 'shift': torch.zeros(12)})",
        Reuse.RECOMPILES,
    ),
    "steps=3": ("model(*program.get_input_sets()[0], 3)", Reuse.RECOMPILES),
    "steps=2": ("model(*program.get_input_sets()[0], 2)", Reuse.REUSED),
    "x=f32[1, 8, 16], batch={'mask': f32[1, 8], 'shift': f32[1]}": (
        "model(torch.randn(1, 8, 16), {'mask': torch.ones(1, 8), 'shift': torch.zeros(1)})",
        Reuse.RECOMPILES,
    ),
}
"""What is asked of a module with a buffer, an attribute that it sets, a dictionary and a number."""


@pytest.mark.parametrize("device", ["cpu", "sim:H200"])
def test_several_arguments_and_buffers_are_asked_about_together(device: str, tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    file.write_text(BUFFERED.lstrip("\n"))
    run = a_run(file, "Model", kind=TargetKind.MODULE_CLASS, rung=Rung.CAPTURE, device=device)
    report = do(replace(run, what_if=tuple(COMBINED))).report
    assert [one.outcome for one in report.what_if] == [outcome for _, outcome in COMBINED.values()]
    assert compiled_again(tmp_path, [call for call, _ in COMBINED.values()]) == [
        outcome is Reuse.RECOMPILES for _, outcome in COMBINED.values()
    ]


def compiled_again(folder: Path, calls: list[str]) -> list[bool]:
    """For each call whether plain torch compiles again for it, after the calls of the program's own sets."""
    done = subprocess.run(
        [sys.executable, "-c", TRIAL, *calls], cwd=folder, check=True, timeout=200, capture_output=True, text=True
    )
    return [line == "ANSWER True" for line in done.stdout.splitlines() if line.startswith("ANSWER")]


def test_what_cannot_be_asked_is_a_sentence(tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    file.write_text(
        textwrap.dedent("""
        import torch

        def f(x):
            return x * 2

        def get_inputs():
            return [torch.randn(4)]
        """)
    )
    questions = ("x=f32[", "nope=1", "f32[4]")
    report = do(replace(a_run(file, "f", kind=TargetKind.FUNCTION, rung=Rung.CAPTURE), what_if=questions)).report
    unreadable, unknown, fits = report.what_if
    assert unreadable.outcome is unknown.outcome is Reuse.UNKNOWN
    assert "cannot be read" in unreadable.message
    assert "f(x) cannot be called like this" in unknown.message
    assert fits.outcome is Reuse.REUSED


def test_calls_are_tried_in_the_grad_mode_that_the_program_calls_in(tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    file.write_text(
        textwrap.dedent("""
        import torch

        def f(x):
            return x * 2

        def exercise(fn):
            with torch.no_grad():
                fn(torch.randn(4))
        """)
    )
    questions = ("f32[4]", "f32[5]")
    report = do(replace(a_run(file, "f", kind=TargetKind.FUNCTION, rung=Rung.CAPTURE), what_if=questions)).report
    assert [one.outcome for one in report.what_if] == [Reuse.REUSED, Reuse.RECOMPILES]
    assert [guard.kind for guard in report.what_if[1].guards] == ["size"]
