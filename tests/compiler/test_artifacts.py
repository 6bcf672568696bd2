"""What the compiler makes of kernels, through the command line: texts with the program's own lines beside them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(500)]

MODEL = """
import torch


class Model(torch.nn.Module):
    def forward(self, x):
        y = torch.relu(x) + 3.25
        return torch.softmax(y, -1)


def get_init_inputs():
    return []


def get_inputs():
    return [torch.randn(64, 300)]
"""
ADD, SOFTMAX = 7, 8


def check(folder: Path, *options: str) -> str:
    pytest.importorskip("triton")
    command = [
        sys.executable,
        "-m",
        "inductoscope",
        "check",
        "model.py",
        "--device",
        "sim:H200",
        "--no-probe",
        *options,
    ]
    environment = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache")}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_from_a_line_to_its_instructions(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(MODEL)
    told: dict[str, Any] = json.loads(check(tmp_path, "--json"))
    (target,) = told["targets"]
    (kernel,) = [one for one in target["kernels"] if one["phase"] == "forward"]
    (likely,) = [config for config in kernel["configs"] if config["likely"]]
    assert likely["registers"] == kernel["resources"]["registers"]
    assert [artifact["stage"] for artifact in likely["artifacts"]] == ["ttir", "ttgir", "llir", "ptx", "cubin"]
    assert target["assembler"]["ptxas"]
    assert (tmp_path / "cache" / "inductoscope" / "kernels" / kernel["stored"][:2] / f"{kernel['stored']}.zip").exists()

    text = check(tmp_path, "--show", "configs,ptx,sass,ttgir,llir", "--kernel", kernel["name"])
    rows = re.findall(r"^\s+(\d*)\s+(\d+) \| (.*)$", text, re.MULTILINE)
    constant = [row for row in rows if "0f40500000" in row[2]]  # 3.25 in PTX
    assert constant
    assert {row[0] for row in constant} == {str(ADD)}
    exponentials = [row for row in rows if "ex2.approx" in row[2] or "MUFU.EX2" in row[2]]
    assert any("MUFU" in row[2] for row in exponentials)
    assert {row[0] for row in exponentials} == {str(SOFTMAX)}
    assert f"{likely['registers']}" in text
