"""What the benchmark of latencies edits and how it counts; the measuring itself is left to who wants the numbers."""

from __future__ import annotations

import ast
import os

import pytest

from support.scripts import load

latency = load("latency")
programs, processes = latency.programs, latency.processes


@pytest.mark.parametrize(("percent", "expected"), [(50, 2), (95, 4), (99, 4), (25, 1)])
def test_percentiles_are_samples(percent: float, expected: float) -> None:
    assert latency.percentile([4, 1, 3, 2], percent) == expected


def test_the_edits_of_the_example_make_and_mend_a_break_in_its_forward() -> None:
    text = programs.with_anchor((latency.EXAMPLES / latency.MODEL).read_text(encoding="utf-8"), latency.CLASS)
    assert _beginning_of_forward(programs.numbered(text, 3)) == ["x = x * 1.0003", "print('pass 3')"]
    assert _beginning_of_forward(programs.numbered(text, 4))[0] == "x = x * 1.0004"
    assert "print" not in "".join(_beginning_of_forward(programs.numbered(text, 4)))


def _beginning_of_forward(text: str) -> list[str]:
    """The first two statements of the example's `forward`."""
    model = next(node for node in ast.parse(text).body if isinstance(node, ast.ClassDef) and node.name == latency.CLASS)
    forward = next(node for node in model.body if isinstance(node, ast.FunctionDef) and node.name == "forward")
    return [ast.unparse(statement) for statement in forward.body[:2]]


def test_each_edit_of_the_generated_programs_is_another_program() -> None:
    for text in (programs.four_graphs, programs.far):
        assert ast.dump(ast.parse(text(1))) != ast.dump(ast.parse(text(2)))


def test_the_ratio_is_to_what_people_do_today(capsys: pytest.CaptureFixture[str]) -> None:
    table = latency.Table({"again": 30.0})
    table.row("edit", [1.0, 2.0, 3.0], "again")
    assert capsys.readouterr().out.split() == ["edit", "3", "2000.0", "3000.0", "15.0x", "again"]


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="there is no /proc")  # noqa: PTH112
def test_a_process_is_in_its_own_tree_and_uses_memory() -> None:
    assert os.getpid() in processes.tree(os.getpid())
    resident, proportional = processes.memory_mib(os.getpid())
    assert resident >= proportional > 1
