"""What `inductoscope check` has to say about the examples.

The facts were found with torch's own tools on torch 2.13: `TORCH_LOGS=graph_breaks,recompiles` for breaks and guards,
`torch._dynamo.utils.counters` for graphs, Inductor's output code for the kernels.
"""

from __future__ import annotations

import ast
import collections
import os
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

import pytest

from .checking import EXAMPLES, At, check

NAMES = sorted(path.name for path in EXAMPLES.glob("*.py"))


@dataclass(frozen=True)
class Break:
    """A finding `graph-break`: where, torch's id, and the call sites from the outermost in."""

    at: At
    id: str
    called_from: tuple[At, ...] = ()
    outcome: str = "split"


@dataclass(frozen=True)
class Recompile:
    """A finding `recompile`: where, the guard, and how often."""

    at: At
    guard: str
    count: int = 1


@dataclass(frozen=True)
class Expected:
    """All that has to be reported about an example on the CPU, and nothing else."""

    target: str
    line: At
    status: str
    graphs: int
    breaks: tuple[Break, ...] = ()
    recompiles: tuple[Recompile, ...] = ()


_LENGTH = "tensor 'x' size mismatch"
_BLOCK = "class GPTBlock"

EXPECTED = {
    "gpt_block.py": Expected(
        target="GPTBlock.forward",
        line=At("def forward", after=_BLOCK),
        status="partial",
        graphs=6,
        breaks=(
            Break(At("print(text)"), "GB0059", called_from=(At('describe("attention"'), At('say(f"'))),
            Break(At("if rms >"), "GB0170"),
        ),
        # Each piece of the broken program is compiled again for the longer sequence, the helper too.
        recompiles=(
            Recompile(At("def forward", after=_BLOCK), _LENGTH),
            Recompile(At("def describe"), _LENGTH),
            Recompile(At('describe("attention"'), _LENGTH),
            Recompile(At("if rms >"), _LENGTH),
        ),
    ),
    "step_mlp.py": Expected(
        target="Model.forward",
        line=At("def forward"),
        status="compiled",
        graphs=4,
        recompiles=(Recompile(At("self.calls += 1"), "self.calls == N", count=3),),
    ),
    "conv_bn.py": Expected(
        target="Model.forward", line=At("def forward", after="class Model"), status="compiled", graphs=1
    ),
    "kv_cache.py": Expected(
        target="Model.forward",
        line=At("def forward"),
        status="compiled",
        graphs=2,
        recompiles=(Recompile(At("def forward"), "tensor 'cache.keys' size mismatch"),),
    ),
    "llama_tiny.py": Expected(
        target="Model.forward",
        line=At("def forward"),
        status="compiled",
        graphs=2,
        recompiles=(Recompile(At("def forward"), "tensor 'tokens' size mismatch"),),
    ),
}


def facts(target: dict[str, Any]) -> collections.Counter[tuple[object, ...]]:
    """Every finding of a report, reduced to what is compared."""
    return collections.Counter(
        (
            found["code"],
            found["line"],
            found["id"],
            found["outcome"],
            found["guard_family"],
            found["count"] if found["code"] == "recompile" else None,
            tuple(place["line"] for place in found["related"]),
        )
        for found in target["findings"]
    )


def captured(target: dict[str, Any]) -> list[dict[str, Any]]:
    """The graphs that Dynamo captured; those of backward passes are made of them."""
    return [graph for graph in target["graphs"] if graph["phase"] == "forward"]


def expected_facts(name: str, expected: Expected) -> collections.Counter[tuple[object, ...]]:
    """The same of what should be found."""
    breaks = (
        ("graph-break", it.at.line(name), it.id, it.outcome, None, None, tuple(at.line(name) for at in it.called_from))
        for it in expected.breaks
    )
    recompiles = (("recompile", it.at.line(name), None, None, it.guard, it.count, ()) for it in expected.recompiles)
    return collections.Counter([*breaks, *recompiles])


@pytest.mark.slow
@pytest.mark.parametrize("name", EXPECTED)
def test_check_reports_what_torch_did_and_nothing_else(name):
    if name == "llama_tiny.py":
        pytest.importorskip("transformers")
    expected = EXPECTED[name]
    target = check(name, device="cpu", rung="capture")
    assert (target["name"], target["line"]) == (expected.target, expected.line.line(name))
    assert target["status"] == expected.status
    assert len(captured(target)) == expected.graphs
    assert facts(target) == expected_facts(name, expected)


@pytest.mark.slow
def test_the_guards_of_a_recompile_are_told_with_their_values():
    (first, second, third) = check("step_mlp.py", device="cpu", rung="capture")["recompiles"]
    told = [(it["compile_id"], it["input_set"], it["guards"][0]["actual"]) for it in (first, second, third)]
    assert told == [("0/1", 1, "1"), ("0/2", 2, "2"), ("0/3", 3, "3")]
    assert first["guards"][0]["source"] == "self.calls"
    assert first["guards"][0]["line"] == At("self.calls += 1").line("step_mlp.py")


@pytest.mark.slow
def test_every_convolution_is_a_library_call_on_its_own_line():
    name = "conv_bn.py"
    target = check(name, device="cpu", rung="lower")
    forward = [kernel for kernel in target["kernels"] if kernel["phase"] == "forward"]
    convolutions = [kernel for kernel in forward if kernel["name"] == "extern_kernels.convolution"]
    lines = collections.Counter(place["line"] for kernel in convolutions for place in kernel["lines"])
    assert lines == {
        At("self.stem(images)").line(name): 1,
        At("self.first(x)").line(name): 3,
        At("self.second(y)").line(name): 3,
        At("self.skip(x)").line(name): 2,  # the first stage keeps its shape
    }
    generated = [kernel for kernel in forward if kernel["language"] == "cpp"]
    assert len(generated) == 11
    assert all(kernel["lines"] and kernel["source"] for kernel in generated)
    assert target["findings"] == []


@pytest.mark.slow
def test_a_hand_written_kernel_stands_between_generated_ones_on_a_simulated_gpu():
    name = "triton_call.py"
    target = check(name, device="sim:H200", rung="lower")
    assert (target["name"], target["status"], len(captured(target))) == ("gated_residual", "compiled", 1)
    assert target["breaks"] == []
    launch = At("swiglu_kernel[").line(name)
    assert [(found["code"], found["line"]) for found in target["findings"]] == [("user-kernel", launch)]
    kernels = [(kernel["user_written"], kernel["lines"][-1]["line"]) for kernel in target["kernels"]]
    assert kernels == [
        (False, At("torch.tanh(gate)").line(name)),
        (True, launch),
        (False, At("layer_norm(").line(name)),
    ]


@pytest.mark.slow
def test_an_example_for_a_gpu_says_so_on_the_cpu():
    target = check("triton_call.py", device="cpu", rung="capture", status=2)
    assert target["status"] == "not-run"
    assert "needs a GPU" in target["message"]
    assert "--device sim:" in target["message"]


@pytest.mark.slow
def test_a_cache_in_a_dataclass_moves_to_the_simulated_gpu():
    name = "kv_cache.py"
    target = check(name, device="sim:H200", rung="capture")
    assert target["status"] == "compiled"
    assert facts(target) == expected_facts(name, EXPECTED[name])


@pytest.mark.slow
def test_measuring_a_program_that_compiles_on_each_call_is_refused():
    path = str(EXAMPLES / "step_mlp.py")
    command = [sys.executable, "-m", "inductoscope", "bench", path, "--device", "cpu", "--seconds", "0.5"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 2
    assert "compiled again" in done.stdout + done.stderr
    assert "faster" not in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_each_example_is_an_ordinary_program(name):
    if name == "llama_tiny.py":
        pytest.importorskip("transformers")
    # Without the compiler, which other tests run; a program is a program either way.
    environment = {**os.environ, "TORCHDYNAMO_DISABLE": "1", "CUDA_VISIBLE_DEVICES": ""}
    command = [sys.executable, str(EXAMPLES / name)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    if name == "triton_call.py":
        assert "needs an NVIDIA GPU" in done.stdout


@pytest.mark.parametrize("name", NAMES)
def test_examples_do_not_know_inductoscope(name):
    tree = ast.parse((EXAMPLES / name).read_text(encoding="utf-8"))
    imported = {
        alias.name.split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names
    } | {(node.module or "").split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert imported <= {"torch", "triton", "transformers", "dataclasses"}


def test_every_example_has_an_expectation():
    assert set(NAMES) == set(EXPECTED) | {"triton_call.py"}
