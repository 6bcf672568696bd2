"""`inductoscope guards` as a command, with a real worker."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

PROGRAM = """\
import torch

GAIN = 3


@torch.compile
def f(x):
    return x * GAIN


def get_inputs():
    return [torch.randn(4, 8)]
"""


def run(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    (folder / "program.py").write_text(PROGRAM)
    command = [sys.executable, "-m", "inductoscope", "guards", "program.py", "--device", "cpu", *options]
    return subprocess.run(command, cwd=folder, timeout=200, capture_output=True, text=True, check=False)


def test_the_text_lists_guards_by_line_and_answers_what_was_asked(tmp_path: Path) -> None:
    done = run(tmp_path, "--with", "x=f64[4, 8]; x=f32[4, 8]")
    assert (done.returncode, done.stderr) == (0, "")
    guards = done.stdout.index("program.py:8  return x * GAIN")
    assert "GAIN == 3" in done.stdout[guards:]
    assert "size [4, 8]" in done.stdout[guards:]
    assert "f64[4, 8]  recompiles" in done.stdout
    assert "x dtype: expected Float, actual Double  program.py:8" in done.stdout
    assert "f32[4, 8]  reused" in done.stdout


def test_json_holds_what_is_asked_for(tmp_path: Path) -> None:
    done = run(tmp_path, "--json", "--argument", "GAIN")
    assert done.returncode == 0
    (target,) = json.loads(done.stdout)["targets"]
    assert [(guard["source"], guard["kind"], guard["line"]) for guard in target["guards"]] == [("GAIN", "value", 8)]
    assert target["dimensions"] == []
