"""A program with torch does the same under `inductoscope run`, and a check afterwards has its inputs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

pytestmark = pytest.mark.slow

PROGRAM = """
import torch

def steps(x, scale=2.0):
    y = x * scale
    print("in between")
    return y.sum()

compiled = torch.compile(steps, backend="eager")

if __name__ == "__main__":
    torch.manual_seed(0)
    print(compiled(torch.randn(3, 4)).item())
    print(compiled(torch.randn(5, 4)).item())
    raise SystemExit(5)
"""
CLI = [sys.executable, "-c", "import sys; from inductoscope.server.cli import main; sys.exit(main())"]


def start(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache")}
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=240, check=False)


def test_a_recorded_run_and_the_check_after_it(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    plain = start([sys.executable, "program.py"], tmp_path)
    recorded = start([*CLI, "run", "--json", "report.json", "--", sys.executable, "program.py"], tmp_path)
    assert (recorded.returncode, recorded.stdout) == (plain.returncode, plain.stdout)
    assert "run of " in recorded.stderr

    report = json.loads((tmp_path / "report.json").read_text())
    (found,) = report["breaks"]
    assert (found["found"]["file"], found["found"]["line"]) == ("program.py", 6)
    assert [(call["line"], call["text"]) for call in report["calls"] if call["exact"]] == [
        (13, "print(compiled(torch.randn(3, 4)).item())"),
        (14, "print(compiled(torch.randn(5, 4)).item())"),
    ]
    assert any(step["guard"] for story in report["stories"] for step in story["steps"])

    check = start(
        [*CLI, "check", "program.py", "--rung", "capture", "--device", "cpu", "--no-probe", "--json"], tmp_path
    )
    (target,) = json.loads(check.stdout)["targets"]
    assert [one["args"] for one in target["inputs"]] == [["x=f32[3, 4]", "scale=2.0"], ["x=f32[5, 4]", "scale=2.0"]]
    assert target["inputs"][0]["from"].startswith("recorded ")
    assert [one["line"] for one in target["breaks"]] == [6]
