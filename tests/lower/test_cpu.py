"""Lowering for the CPU: kernels, groups, lines."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from inductoscope.protocol.report import KernelLanguage, Phase  # noqa: E402
from lower.support.driver import coverage, line_of, load, lower, run  # noqa: E402

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def transformer():
    module = load("transformer")
    return lower(lambda: run(module)), module


def test_every_kernel_is_one_group_in_call_order(transformer):
    facts, _ = transformer
    assert facts.problems == ()
    assert [group.kernel for group in facts.fusion_groups] == [kernel.name for kernel in facts.kernels]
    assert [group.id for group in facts.fusion_groups] == [f"0/0:{at}" for at in range(len(facts.kernels))]


def test_a_matmul_is_a_library_call_with_its_own_line_and_operations(transformer):
    facts, module = transformer
    up = line_of(module, "self.up(x)")
    (kernel,) = [
        k for k in facts.kernels if k.language is KernelLanguage.EXTERN and k.phase is Phase.FORWARD
        and [place.line for place in k.lines] == [up]
    ]  # fmt: skip
    assert kernel.name == "extern_kernels.addmm"
    assert kernel.flops == 2 * 32 * 64 * 256
    assert kernel.bytes_written == 32 * 256 * 4


def test_fused_lines_map_to_the_lines_that_they_compute(transformer):
    facts, module = transformer
    softmax = next(k for k in facts.kernels if "amax" in k.name and k.phase is Phase.FORWARD)
    by_model_line: dict[int, list[str]] = {}
    text = softmax.source.splitlines()
    for mapping in softmax.line_map:
        by_model_line.setdefault(mapping.line, []).append(text[mapping.kernel_line - 1])
    exp = "\n".join(by_model_line[line_of(module, ".exp()")])
    assert ".exp" in exp and "sum" not in exp
    assert any("max" in line for line in by_model_line[line_of(module, "scores.amax")])
    assert any("/" in line for line in by_model_line[line_of(module, "weights.sum(")])


def test_the_backward_pass_has_its_kernels(transformer):
    facts, module = transformer
    backward = [kernel for kernel in facts.kernels if kernel.phase is Phase.BACKWARD]
    gelu = line_of(module, "F.gelu")
    assert any(gelu in [place.line for place in kernel.lines] for kernel in backward)
    assert [wrapper.phase for wrapper in facts.wrappers] == [Phase.FORWARD, Phase.BACKWARD]


@pytest.mark.parametrize("name", ["transformer", "conv_bn", "training", "dynamic"])
def test_nearly_all_computing_lines_are_mapped(name):
    module = load(name)
    facts = lower(lambda: run(module))
    assert facts.problems == ()
    mapped, wanted = coverage(facts)
    assert wanted > 20
    assert mapped / wanted >= 0.95, f"{mapped} of {wanted}"


def test_reading_facts_pins_no_symbolic_size():
    module = load("dynamic")
    facts = lower(lambda: run(module))
    assert {kernel.graph for kernel in facts.kernels} == {"0/0"}
    assert next(k for k in facts.kernels if k.language is KernelLanguage.EXTERN).flops == 2 * 4 * 24 * 24


def test_kernels_of_modules_of_torch_name_the_modules_behind_them():
    facts = lower(lambda: run(load("bare")))
    assert facts.problems == ()
    assert all(kernel.lines == () for kernel in facts.kernels)
    forward = [kernel for kernel in facts.kernels if kernel.phase is Phase.FORWARD]
    named = [{place.function for place in kernel.library_lines} for kernel in forward]
    assert named == [{"Linear.forward"}, {"ReLU.forward", "LayerNorm.forward"}]
    assert all(kernel.library_lines for kernel in facts.kernels)
