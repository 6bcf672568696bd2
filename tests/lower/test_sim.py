"""Lowering for a GPU that is not there: Triton kernels, templates, hand-written kernels."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("triton")

from inductoscope.compiler.lower.facts import LowerFacts
from inductoscope.protocol import codec
from lower.support.driver import coverage, line_of, load

pytestmark = pytest.mark.slow
TESTS = Path(__file__).parents[1]
MODELS = ("transformer", "conv_bn", "training", "dynamic", "hand_written", "flex", "autotuned", "templates")


@pytest.fixture(scope="module")
def runs() -> dict[str, Any]:
    child = [sys.executable, str(TESTS / "lower" / "support" / "child.py"), "sim:H200", *MODELS]
    environment = {**os.environ, "PYTHONPATH": str(TESTS)}
    done = subprocess.run(child, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.fixture
def facts(runs, request) -> LowerFacts:
    return codec.from_json(LowerFacts, runs[request.param]["facts"])


def kernels(facts: LowerFacts, pattern: str) -> list[Any]:
    return [kernel for kernel in facts.kernels if re.search(pattern, kernel.name)]


@pytest.mark.parametrize("name", MODELS)
def test_watching_changes_no_text(runs, name):
    unnumbered = [re.sub(r"# AOT ID: \['\d+_", "", text) for text in runs[name]["unwatched"]]
    watched = [re.sub(r"# AOT ID: \['\d+_", "", wrapper["source"]) for wrapper in runs[name]["facts"]["wrappers"]]
    assert watched == unnumbered


@pytest.mark.parametrize("facts", MODELS, indirect=True)
def test_nearly_all_computing_lines_are_mapped(facts):
    assert facts.problems == ()
    mapped, wanted = coverage(facts)
    assert wanted >= 5
    assert mapped / wanted >= 0.95, f"{mapped} of {wanted}"


@pytest.mark.parametrize("facts", ["transformer"], indirect=True)
def test_each_operation_of_a_fused_kernel_has_its_own_line(facts):
    module = load("transformer")
    (kernel,) = kernels(facts, "triton_per_fused_.*softmax_online.*view")
    text = kernel.source.splitlines()
    lines = {text[mapping.kernel_line - 1].strip(): mapping.line for mapping in kernel.line_map}
    (exp,) = [line for line in lines if "exp(" in line and "online" not in line][-1:]
    (maximum,) = [line for line in lines if "max" in line and "online" not in line][:1]
    assert lines[exp] == line_of(module, ".exp()")
    assert lines[maximum] == line_of(module, "scores.amax")


@pytest.mark.parametrize("facts", ["transformer"], indirect=True)
def test_two_calls_of_one_kernel_keep_their_own_lines(facts):
    by_name: dict[str, list[Any]] = {}
    for kernel in facts.kernels:
        if kernel.language.value == "triton":
            by_name.setdefault(kernel.name, []).append(kernel)
    shared = [same for same in by_name.values() if len({kernel.lines for kernel in same}) > 1]
    assert shared
    for kernel in (kernel for same in shared for kernel in same):
        assert {mapping.line for mapping in kernel.line_map} <= {place.line for place in kernel.lines}


@pytest.mark.parametrize("facts", ["hand_written"], indirect=True)
def test_a_hand_written_kernel_maps_to_its_own_text(facts):
    module = load("hand_written")
    (kernel,) = [kernel for kernel in facts.kernels if kernel.user_written]
    assert [place.line for place in kernel.lines] == [line_of(module, "scale_kernel[(")]
    assert [op.line for op in facts.fusion_groups[0].ops] == [line_of(module, "x = x + 1")]
    text = kernel.source.splitlines()
    mapped = {text[mapping.kernel_line - 1].strip(): mapping.line for mapping in kernel.line_map}
    assert mapped["tl.store(dst + at, value * factor, mask=inside)"] == line_of(module, "tl.store")
    assert kernel.launch.grid == "(8, 1, 1)"
    (finding,) = [finding for finding in facts.findings if finding.code == "user-kernel"]
    assert finding.line == kernel.lines[0].line
    assert "scale_kernel " in finding.message


@pytest.mark.parametrize("facts", ["flex"], indirect=True)
def test_a_template_belongs_to_its_call_and_its_epilogue_to_the_next_line(facts):
    module = load("flex")
    (kernel,) = kernels(facts, "triton_tem")
    (group,) = [group for group in facts.fusion_groups if group.kernel == kernel.name]
    assert group.kind == "template"
    text = kernel.source.splitlines()
    lines = {text[mapping.kernel_line - 1].strip(): mapping.line for mapping in kernel.line_map}
    dots = [line for text_line, line in lines.items() if "tl.dot" in text_line]
    assert dots and set(dots) == {line_of(module, "flex_attention(q")}
    stores = [line for text_line, line in lines.items() if "tl.store(out_ptr" in text_line]
    assert stores == [line_of(module, "mixed.relu()")]


@pytest.mark.parametrize("facts", ["autotuned"], indirect=True)
def test_what_only_a_card_can_choose_is_listed_and_nothing_is_chosen(facts):
    products = [kernel for kernel in facts.kernels if kernel.language.value == "extern"]
    assert len(products) == 2
    for kernel in products:
        assert kernel.choices[0].name == "mm (library call)"
        assert len(kernel.choices) > 10
        assert all("triton_mm (" in choice.name and "num_warps=" in choice.name for choice in kernel.choices[1:])
        assert {(choice.us, choice.chosen) for choice in kernel.choices} == {(None, None)}
        assert f"{len(kernel.choices)} candidates" in kernel.note
    assert [kernel.choices for kernel in facts.kernels if kernel not in products] == [(), ()]


@pytest.mark.parametrize("facts", ["templates"], indirect=True)
def test_templates_take_in_what_follows_and_say_what_else_there_was(facts):
    assert [(group.kind, group.fusion) for group in facts.fusion_groups] == [("template", "template-epilogue")] * 2
    assert {kernel.library for kernel in facts.kernels} == {"Triton template"}
    assert all(len(kernel.choices) > 10 for kernel in facts.kernels)
    assert [kernel.flops for kernel in facts.kernels] == [2 * 128 * 256 * 512, 2 * 128 * 128 * 512]
    (neighbour,) = facts.fusion_groups[0].apart_from
    assert neighbour.reason == "prologue fusion only supported for pointwise nodes"


@pytest.mark.parametrize("facts", ["transformer"], indirect=True)
def test_a_launch_says_only_what_is_fixed(facts):
    gelu = kernels(facts, "triton_poi_fused_gelu_view")[0].launch
    assert gelu.configs > 1
    assert gelu.num_warps is None
    assert gelu.grid == f"(cdiv({2 * 16 * 256}, XBLOCK), 1, 1)"


@pytest.mark.parametrize("facts", ["dynamic"], indirect=True)
def test_one_configuration_fixes_the_launch(facts):
    (reduction,) = kernels(facts, "triton_(red|per)")
    assert reduction.launch.configs == 1
    assert reduction.launch.num_warps is not None
    assert reduction.launch.grid == "(xnumel, 1, 1)"
    assert reduction.bytes_written == 4 * 48 * 4 + 4 * 4
