"""Lowering for the CPU: kernels, groups, lines, library calls."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from inductoscope.compiler.lower.line_map import computing_lines  # noqa: E402
from inductoscope.protocol.report import KernelLanguage, Phase  # noqa: E402
from lower.support.driver import line_of, lower  # noqa: E402

pytestmark = pytest.mark.slow
MODELS = Path(__file__).parent / "models"


def load(name: str):
    file = MODELS / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"lower_models_{name}", file)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    torch.manual_seed(0)
    spec.loader.exec_module(module)
    return module, str(file)


def run(module):
    model = module.Model(*(module.get_init_inputs() if hasattr(module, "get_init_inputs") else []))
    compiled = torch.compile(model, **getattr(module, "COMPILE_KWARGS", {}))
    if hasattr(module, "exercise"):
        module.exercise(compiled)
        return
    sets = module.get_input_sets() if hasattr(module, "get_input_sets") else [module.get_inputs()]
    for arguments in sets:
        compiled(*arguments)


@pytest.fixture(scope="module")
def transformer():
    module, file = load("transformer")
    return lower(lambda: run(module)), file


def test_every_kernel_is_one_group_in_call_order(transformer):
    facts, _ = transformer
    assert facts.problems == ()
    assert [group.kernel for group in facts.fusion_groups] == [kernel.name for kernel in facts.kernels]
    assert [group.id for group in facts.fusion_groups] == [f"0/0:{at}" for at in range(len(facts.kernels))]


def test_a_matmul_is_a_library_call_with_its_own_line_and_operations(transformer):
    facts, file = transformer
    up = line_of(file, "self.up(x)")
    (kernel,) = [
        k for k in facts.kernels if k.language is KernelLanguage.EXTERN and k.phase is Phase.FORWARD
        and [place.line for place in k.lines] == [up]
    ]  # fmt: skip
    assert kernel.name == "extern_kernels.addmm"
    assert kernel.flops == 2 * 32 * 64 * 256
    assert kernel.bytes_written == 32 * 256 * 4


def test_fused_lines_map_to_the_lines_that_they_compute(transformer):
    facts, file = transformer
    softmax = next(k for k in facts.kernels if "amax" in k.name and k.phase is Phase.FORWARD)
    by_model_line = {}
    text = softmax.source.splitlines()
    for mapping in softmax.line_map:
        by_model_line.setdefault(mapping.line, []).append(text[mapping.kernel_line - 1])
    exp = "\n".join(by_model_line[line_of(file, ".exp()")])
    assert ".exp" in exp and "sum" not in exp
    assert any("max" in line for line in by_model_line[line_of(file, "scores.amax")])
    assert any("/" in line for line in by_model_line[line_of(file, "weights.sum(")])


def test_the_backward_pass_has_its_kernels(transformer):
    facts, file = transformer
    backward = [kernel for kernel in facts.kernels if kernel.phase is Phase.BACKWARD]
    gelu = line_of(file, "F.gelu")
    assert any(gelu in [place.line for place in kernel.lines] for kernel in backward)
    assert [wrapper.phase for wrapper in facts.wrappers] == [Phase.FORWARD, Phase.BACKWARD]


@pytest.mark.parametrize("name", ["transformer", "conv_bn", "training", "dynamic"])
def test_nearly_all_computing_lines_are_mapped(name):
    module, _ = load(name)
    facts = lower(lambda: run(module))
    assert facts.problems == ()
    wanted = mapped = 0
    for kernel in facts.kernels:
        if kernel.source:
            computing = set(computing_lines(kernel.source))
            wanted += len(computing)
            mapped += len(computing & {mapping.kernel_line for mapping in kernel.line_map})
    assert wanted > 40
    assert mapped / wanted >= 0.95, f"{mapped} of {wanted}"
