"""Machine code of kernels, without a GPU, against what Triton and ptxas say themselves."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

CHILD = Path(__file__).parent / "assembling.py"


@cache
def assembled(device: str, *flags: str) -> dict[str, Any]:
    """What `assembling.py` finds on a device."""
    pytest.importorskip("triton")
    command = [sys.executable, str(CHILD), device, *flags]
    done = subprocess.run(command, capture_output=True, text=True, timeout=380, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


NVIDIA = [("H200", "sm_90a"), ("A100", "sm_80"), ("T4", "sm_75"), ("B200", "sm_100a")]


@pytest.mark.parametrize(("device", "target"), NVIDIA)
def test_registers_and_spills_are_those_that_ptxas_counts(device: str, target: str) -> None:
    for kernel in assembled(device)["kernels"]:
        assert kernel["configs"]
        for config in kernel["configs"]:
            own, said = config["own"], config["ptxas"]
            assert f".target {target}" in config["text"]
            assert own["registers"] == said["registers"]
            assert own["spills"] * 4 == said["stack"]
            assert own["problem"] is None
            assert set(config["stages"]) == {"ttir", "ttgir", "llir", "ptx", "cubin"}
            assert config["sass"]  # text of instructions


@pytest.mark.parametrize("device", [device for device, _ in NVIDIA])
def test_configurations_and_their_shared_memory_are_those_that_inductor_compiles(device: str) -> None:
    for kernel in assembled(device)["kernels"]:
        ours = [{"config": one["own"]["config"], "shared": one["own"]["shared"]} for one in kernel["configs"]]
        assert ours == kernel["inductor"], kernel["name"]


def test_a_reduction_has_candidates() -> None:
    kernels = assembled("H200")["kernels"]
    assert any(len(kernel["configs"]) > 1 for kernel in kernels)


def test_amd_has_assembly_and_a_code_object() -> None:
    found = assembled("MI300X")
    for kernel in found["kernels"]:
        for config in kernel["configs"]:
            assert "gfx942" in config["text"]
            assert set(config["stages"]) == {"ttir", "ttgir", "llir", "amdgcn", "hsaco"}
            assert 8 <= config["own"]["registers"] <= 512
            assert config["own"]["occupancy"] > 0


def test_sources_that_are_no_kernels_are_refused_in_a_sentence() -> None:
    plain, unknown, broken = assembled("H200")["refusals"]
    assert "no kernel" in plain
    assert "nothing_of_that_name" in unknown
    assert "SyntaxError" in broken


def test_without_a_ptxas_that_runs_everything_up_to_ptx_is_there() -> None:
    for kernel in assembled("H200", "--without-ptxas")["kernels"]:
        for config in kernel["configs"]:
            assert set(config["stages"]) == {"ttir", "ttgir", "llir", "ptx"}
            assert config["own"]["registers"] is None
            assert config["own"]["shared"] is not None
            assert config["own"]["problem"].startswith("ptxas could not make machine code of this kernel: ")
            assert config["own"]["problem"].endswith(".")
