"""Runs where something is missing: no Triton, a torch that nobody has tried.  What works works; the rest is said."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

MODEL = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            x = x + 1
        return x.sin() * 2

def get_inputs():
    return [torch.ones(8, 8)]
"""
BLOCKED = "raise ImportError('Triton is not here')"
NEXT_YEARS_TORCH = """
import importlib.abc, sys

class Renamed(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name != "torch.version":
            return None
        sys.meta_path.remove(self)
        import importlib.util
        spec = importlib.util.find_spec(name)
        execute = spec.loader.exec_module
        def exec_module(module):
            execute(module)
            module.__version__ = "2.99.0"
        spec.loader.exec_module = exec_module
        return spec

sys.meta_path.insert(0, Renamed())
"""


def check(folder: Path, device: str) -> dict[str, Any]:
    """The report of the model, with `folder` before everything else on the worker's path."""
    (folder / "model.py").write_text(MODEL)
    command = [sys.executable, "-m", "inductoscope", "check", str(folder / "model.py"), "--json", "--no-probe"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(
        [*command, "--device", device], capture_output=True, text=True, timeout=250, check=False, env=environment
    )
    assert done.returncode == 0, done.stderr
    (target,) = json.loads(done.stdout)["targets"]
    assert isinstance(target, dict)
    return target


def test_without_triton_a_simulated_gpu_shows_graphs_and_says_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "triton").mkdir()
    (tmp_path / "triton" / "__init__.py").write_text(BLOCKED)
    target = check(tmp_path, "sim:H200")
    assert (target["device"], target["rung"], target["status"]) == ("sim:H200", "capture", "partial")
    assert target["graphs"] and target["breaks"] and not target["kernels"]
    assert [(sync["line"], sync["expression"]) for sync in target["syncs"]] == [(6, "if x.sum() > 0")]
    assert any("pip install triton" in note for note in target["notes"])


def test_without_triton_auto_is_the_cpu(tmp_path: Path) -> None:
    (tmp_path / "triton").mkdir()
    (tmp_path / "triton" / "__init__.py").write_text(BLOCKED)
    target = check(tmp_path, "auto")
    assert target["device"] == "cpu"
    assert any(kernel["language"] == "cpp" for kernel in target["kernels"])


def test_a_torch_that_nobody_has_tried_is_named_and_shows_what_it_can(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(NEXT_YEARS_TORCH)
    target = check(tmp_path, "sim:H200")
    assert any("2.99" in note for note in target["notes"])
    assert target["status"] == "partial"
    assert any(kernel["language"] == "triton" for kernel in target["kernels"])
