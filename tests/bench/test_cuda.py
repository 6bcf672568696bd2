"""The benchmark on a real GPU; skipped where there is none."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest
import torch

from inductoscope.compiler.bench import Subject, measure
from inductoscope.protocol.report import Agreement

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU"),
]

EXAMPLES = Path(__file__).parents[2] / "examples"


def chain(x: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.layer_norm(torch.nn.functional.gelu(x) * 2 + x, x.shape[-1:])


def large() -> tuple[tuple[object, ...], dict[str, object]]:
    return (torch.randn(4096, 4096, device="cuda"),), {}


def test_fusing_a_chain_of_pointwise_work_shows_in_time_launches_and_memory():
    result = measure(Subject(lambda: chain, torch.compile, large), "cuda", 0.5, lambda text: None)
    assert result.refused is None
    assert result.speedup > 1.5
    assert result.speedup_low > 1
    assert result.where == torch.cuda.get_device_name()
    assert "CUDA events" in result.method
    assert (result.eager_launches, result.compiled_launches) == (4, 1)
    assert result.compiled_peak_bytes < result.eager_peak_bytes
    assert result.numerics.agreement is Agreement.CLOSE


def test_cuda_graphs_are_warm_before_the_clock_starts():
    def compiled(fn):
        return torch.compile(fn, mode="reduce-overhead")

    result = measure(Subject(lambda: chain, compiled, large), "cuda", 0.5, lambda text: None)
    assert result.refused is None
    assert result.compiled.runs > 10


def test_a_hand_written_kernel_is_part_of_the_graph():
    example = runpy.run_path(str(EXAMPLES / "triton_call.py"))

    def inputs() -> tuple[tuple[object, ...], dict[str, object]]:
        return tuple(x.cuda() for x in example["get_inputs"]()), {}

    subject = Subject(lambda: example["gated_residual"], torch.compile, inputs)
    result = measure(subject, "cuda", 0.5, lambda text: None)
    assert result.refused is None
    assert (result.graphs, result.graph_breaks) == (1, 0)
    assert result.numerics.agreement is Agreement.CLOSE
