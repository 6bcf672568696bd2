"""A program whose driver makes tensors on the CPU and uses all that comes back, on a simulated GPU."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
PROGRAM = Path(__file__).parent / "programs" / "driver_on_the_cpu.py"


def test_the_driver_finds_what_it_would_find_on_the_cpu_and_its_looks_are_no_syncs() -> None:
    pytest.importorskip("triton")
    command = [sys.executable, "-m", "inductoscope", "check", str(PROGRAM), "--json", "--device", "sim:H200"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr
    (target,) = json.loads(done.stdout)["targets"]
    assert target["status"] == "compiled"
    assert len(target["inputs"]) == 3
    assert target["syncs"] == []
    assert {kernel["language"] for kernel in target["kernels"]} == {"triton"}
