"""Kernels that several operations share in less usual ways, and kernels of graphs inside of graphs; bytes by hand."""

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

from inductoscope.compiler.lower.facts import LowerFacts
from inductoscope.protocol import codec
from lower.support.driver import line_of, load

pytestmark = pytest.mark.slow
TESTS = Path(__file__).parents[1]
MODELS = ("foreach", "combos", "branches")
F32 = 4


@pytest.fixture(scope="module")
def runs() -> dict[str, Any]:
    child = [sys.executable, str(TESTS / "lower" / "support" / "child.py"), "sim:H200", *MODELS]
    done = subprocess.run(
        child, env={**os.environ, "PYTHONPATH": str(TESTS)}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.fixture
def facts(runs, request) -> LowerFacts:
    facts = codec.from_json(LowerFacts, runs[request.param]["facts"])
    assert facts.problems == ()
    return facts


@pytest.mark.parametrize("facts", ["foreach"], indirect=True)
def test_a_list_of_operations_is_one_kernel(facts):
    ((group, kernel),) = zip(facts.fusion_groups, facts.kernels, strict=True)
    assert (group.kind, group.fusion) == ("foreach", "combo")
    assert kernel.bytes_read == kernel.bytes_written == (64 * 64 + 32 + 16 * 16 + 7) * F32


@pytest.mark.parametrize("facts", ["combos"], indirect=True)
def test_a_combo_of_several_kernels_is_told_apart(facts):
    combo, alone = facts.fusion_groups
    assert (combo.kind, combo.fusion) == ("combo", "combo")
    assert (alone.kind, alone.fusion) == ("persistent-reduction", "vertical")
    assert {op.op for op in combo.ops} == {"aten.sin", "aten.add", "aten.cos", "aten.mul", "aten.exp"}
    assert {op.op for op in alone.ops} == {"aten.relu", "aten.sum"}
    assert [neighbour.reason for neighbour in combo.apart_from] == ["one combo, written as several kernels"]
    first, second = facts.kernels
    assert first.bytes_read == first.bytes_written == (64 * 64 + 32 * 128 + 700) * F32
    assert (second.bytes_read, second.bytes_written) == (16 * 16 * F32, 16 * F32)


@pytest.mark.parametrize("facts", ["branches"], indirect=True)
def test_kernels_inside_of_branches_and_loops_have_their_own_lines_and_bytes(facts):
    module = load("branches")
    by_line = {
        name: [k for k in facts.kernels if {place.line for place in k.lines} == {line_of(module, text)}]
        for name, text in (("yes", "return (x.sin()"), ("no", "return x.cos()"), ("body", "x.exp()"), ("test", "i < 5"))
    }
    for name in ("yes", "no"):
        (kernel,) = by_line[name]
        assert kernel.bytes_read == kernel.bytes_written == 8 * 8 * F32
    assert [kernel.bytes_written for kernel in by_line["test"]] == [1]
    assert 8 * 8 * F32 in [kernel.bytes_written for kernel in by_line["body"]]
    ops = {op.op for group in facts.fusion_groups for op in group.ops}
    assert not ops & {"cond", "while_loop"}
