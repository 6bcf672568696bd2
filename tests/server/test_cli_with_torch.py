"""The command with a real worker: nothing between the arguments and torch is replaced."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

MODEL = """
    import torch

    def report(x):
        print("seen", x.shape)

    # inductoscope: x=f32[8, 64]; x=f32[16, 64]
    def blend(x):
        y = torch.softmax(x * 2, -1)
        report(y)
        return y + 1
"""


def check(folder: Path, source: str, *arguments: str) -> tuple[int, dict[str, Any], str]:
    """Exit status, report and standard error of a check of `source`."""
    (folder / "model.py").write_text(textwrap.dedent(source).lstrip("\n"))
    command = [sys.executable, "-m", "inductoscope", "check", "model.py", "--json", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=240, check=False)
    return done.returncode, json.loads(done.stdout), done.stderr


def test_a_break_and_a_recompile_on_their_lines(tmp_path: Path) -> None:
    status, report, err = check(tmp_path, MODEL, "--device", "cpu", "--rung", "capture", "--fail-on", "break")
    assert (status, err) == (1, "")
    (target,) = report["targets"]
    assert (target["status"], target["rung"], target["inputs"][0]["args"]) == ("partial", "capture", ["x=f32[8, 64]"])
    found = {(finding["code"], finding["file"], finding["line"]) for finding in target["findings"]}
    assert ("graph-break", "model.py", 4) in found
    assert any(code == "recompile" for code, _, _ in found)


def test_kernels_of_a_simulated_gpu_with_their_lines_and_resources(tmp_path: Path) -> None:
    pytest.importorskip("triton")
    status, report, _ = check(tmp_path, MODEL, "--device", "sim:H200")
    assert status == 0
    kernels = [kernel for kernel in report["targets"][0]["kernels"] if kernel["language"] == "triton"]
    softmax = next(kernel for kernel in kernels if "softmax" in kernel["name"])
    assert "@triton.jit" in softmax["source"]
    assert [place["line"] for place in softmax["lines"]] == [8]
    assert softmax["resources"]["registers"] > 0
    assert softmax["predicted"]["us"] > 0
    assert softmax["measured"] is None


def test_a_crash_in_native_code_is_placed_on_the_users_line(tmp_path: Path) -> None:
    source = """
        import ctypes
        ENTRY = "step"

        def step(x):
            return x + 1

        def exercise(fn):
            ctypes.string_at(0)
    """
    status, report, err = check(tmp_path, source, "--device", "cpu")
    assert status == 2
    (finding,) = report["targets"][0]["findings"]
    assert (finding["code"], finding["file"], finding["line"]) == ("worker-crash", "model.py", 8)
    assert "SIGSEGV" in finding["message"] and "SIGSEGV" in err


def test_what_the_program_prints_stays_out_of_the_report(tmp_path: Path) -> None:
    source = """
        import os
        import sys
        ENTRY = "step"
        print("at import")
        os.write(1, b"to the descriptor\\n")

        def step(x):
            return x + 1

        def get_inputs():
            sys.stdout.write("in get_inputs\\n")
            import torch
            return [torch.ones(2)]
    """
    status, report, err = check(tmp_path, source, "--device", "cpu", "--rung", "capture")
    assert (status, err) == (0, "")
    assert report["targets"][0]["status"] == "compiled"
