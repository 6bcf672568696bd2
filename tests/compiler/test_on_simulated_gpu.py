"""Whole programs on a simulated GPU, through the command line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
PROGRAMS = Path(__file__).parent / "programs"


def check(name: str, device: str = "sim:H200") -> dict[str, Any]:
    """The report of the only target of a program."""
    pytest.importorskip("triton")
    command = [sys.executable, "-m", "inductoscope", "check", str(PROGRAMS / name), "--json", "--device", device]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr
    (target,) = json.loads(done.stdout)["targets"]
    assert isinstance(target, dict)
    return target


def test_a_driver_finds_what_it_would_find_on_the_cpu_and_its_looks_are_no_syncs() -> None:
    target = check("driver_on_the_cpu.py")
    assert target["status"] == "compiled"
    assert len(target["inputs"]) == 3
    assert target["syncs"] == []
    assert {kernel["language"] for kernel in target["kernels"]} == {"triton"}


def test_launches_of_a_hand_written_kernel_are_counted_inside_and_outside_of_graphs() -> None:
    target = check("hand_written_kernel.py")
    (own,) = [kernel for kernel in target["kernels"] if kernel["user_written"]]
    assert own["note"] == "This is double_kernel of the program, launched 3 times in these calls."
    text = (PROGRAMS / "hand_written_kernel.py").read_text().splitlines()
    line = next(number for number, line in enumerate(text, 1) if line.endswith("# beside"))
    (note,) = [note for note in target["notes"] if "double_kernel is launched 2 times outside" in note]
    assert note.endswith(f"line {line}.")


def test_a_graph_that_inductor_cannot_take_is_a_break_as_for_torch_and_no_failure() -> None:
    target = check("write_under_mask.py")
    assert (target["status"], target["graphs"], target["kernels"]) == ("eager", [], [])
    (found,) = target["breaks"]
    line = (PROGRAMS / "write_under_mask.py").read_text().splitlines().index("        y[mask] = self.mark") + 1
    assert (found["line"], found["outcome"]) == (line, "whole-function-eager")
    assert "backward pass" in found["explanation"] and "torch.no_grad()" in found["hints"][0]


def test_a_type_that_the_card_lacks_leaves_the_function_uncompiled_as_for_torch() -> None:
    target = check("bfloat16.py", "sim:T4")
    assert (target["status"], target["graphs"], target["kernels"]) == ("eager", [], [])
    assert "BF16 is not supported" in target["message"]
    (found,) = target["findings"]
    assert found["code"] == "not-compiled" and "`scaled` was skipped" in found["message"]
