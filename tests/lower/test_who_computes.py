"""Who computes what Inductor leaves to others: by device, operator and numbers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("triton")

import torch

from inductoscope.compiler.lower.facts import LowerFacts
from inductoscope.protocol import codec
from inductoscope.protocol.report import KernelLanguage
from lower.support.driver import line_of, load, lower, run

pytestmark = pytest.mark.slow
TESTS = Path(__file__).parents[1]
CARDS = ("sim:H200", "sim:MI300X")


def by_line(facts: LowerFacts, language: KernelLanguage = KernelLanguage.EXTERN) -> dict[str, set[str | None]]:
    """The libraries behind each line of the model `libraries`, named by the variable that the line makes."""
    assert facts.problems == ()
    names = {line_of(load("libraries"), f"{name} = "): name for name in NAMES}
    found: dict[str, set[str | None]] = {}
    for kernel in facts.kernels:
        if kernel.language is language:
            for place in kernel.lines:
                found.setdefault(names.get(place.line, "others"), set()).add(kernel.library)
    return found


NAMES = (
    "pixels", "single", "spectrum", "factor", "solved", "batches", "tiny", "half", "attention", "largest",
)  # fmt: skip


@pytest.fixture(scope="module")
def cpu() -> LowerFacts:
    return lower(lambda: run(load("libraries")))


@pytest.fixture(scope="module")
def cards() -> dict[str, LowerFacts]:
    found = {}
    for card in CARDS:
        child = [sys.executable, str(TESTS / "lower" / "support" / "child.py"), card, "libraries"]
        environment = {**os.environ, "PYTHONPATH": str(TESTS)}
        done = subprocess.run(child, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-3000:]
        told: dict[str, Any] = json.loads(done.stdout)
        found[card] = codec.from_json(LowerFacts, told["libraries"]["facts"])
    return found


@pytest.mark.skipif(not torch.backends.mkl.is_available(), reason="this build has another BLAS")
def test_on_the_cpu_the_build_and_the_numbers_decide(cpu):
    found = by_line(cpu)
    assert found["pixels"] == {"oneDNN"}
    assert found["spectrum"] == {"MKL"}
    assert "MKL (LAPACK)" in found["factor"]
    assert found["batches"] == {"MKL"}
    assert found["tiny"] == {"ATen"}  # too small for MKL: a loop of torch's own
    assert found["half"] == {"ATen"}  # oneDNN or not: bfloat16 depends on the processor
    assert found["attention"] == {"ATen (FlashAttention for the CPU)"}


def test_on_a_card_of_nvidia(cards):
    found = by_line(cards["sim:H200"])
    assert found["pixels"] == {"cuDNN"}
    assert found["single"] == {"ATen"}  # depthwise: a kernel of torch's own
    assert found["spectrum"] == {"cuFFT"}
    assert {"cuBLAS", "cuSOLVER or MAGMA"} <= found["factor"]
    assert found["solved"] == {"cuBLAS or MAGMA"}
    assert found["batches"] == found["tiny"] == found["half"] == {"cuBLAS"}
    assert found["attention"] == {"memory-efficient attention (CUTLASS)"}
    assert found["largest"] == {"ATen"}


def test_a_card_of_amd_has_other_libraries(cards):
    found = by_line(cards["sim:MI300X"])
    assert found["spectrum"] == {"hipFFT"}
    assert found["batches"] == found["half"] == {"hipBLAS"}
    named = {library for libraries in found.values() for library in libraries}
    assert not {library for library in named if library and library.startswith("cu")}


def test_generated_kernels_have_no_library(cpu, cards):
    for facts in (cpu, *cards.values()):
        assert {kernel.library for kernel in facts.kernels if kernel.language is not KernelLanguage.EXTERN} == {None}
