"""A torch that is newer than all that are known runs with a warning; one that is too old gets a sentence."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent


def as_version(version: str, program: str, device: str = "cpu") -> dict[str, Any]:
    """What is said of a program when torch says that it is `version`."""
    command = [sys.executable, str(HERE / "unknown_version.py"), version, str(HERE / "programs" / program), device]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_an_unknown_newer_version_runs_with_a_warning_in_the_report() -> None:
    told = as_version("2.17.0", "trained.py")
    assert told["problem"] is None
    assert "torch 2.17.0 is newer than 2.15" in told["warning"]
    assert told["end"] == "RunDone"
    assert told["report"]["notes"][0] == f"{told['warning']}."
    assert told["report"]["status"] == "compiled"
    assert told["report"]["kernels"]


def test_an_unknown_newer_version_simulates_a_gpu_with_a_warning() -> None:
    pytest.importorskip("triton")
    told = as_version("2.17.0", "inferred.py", "sim:H200")
    assert told["end"] == "RunDone"
    assert any("torch 2.17.0 is newer" in note for note in told["report"]["notes"])
    assert {kernel["language"] for kernel in told["report"]["kernels"]} >= {"triton"}


def test_an_older_version_gets_a_sentence_and_no_run() -> None:
    told = as_version("2.10.1", "inferred.py")
    assert "has torch 2.10.1; Inductoscope needs 2.11 or newer" in told["problem"]
    assert told["end"] is None
