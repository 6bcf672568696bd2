"""What Inductor makes of a program for a simulated GPU, and what the device has to tell about it."""

from collections.abc import Callable
from typing import Any

import pytest

from simgpu import support

pytestmark = pytest.mark.slow
FILE = "compiled"


@pytest.fixture(scope="module")
def results() -> tuple[Any, Any]:
    return support.run(FILE, "cpu"), support.run(FILE, "sim:H200")


@pytest.fixture(scope="module")
def simulated(results: tuple[Any, Any]) -> Callable[[str], Any]:
    return lambda name: results[1][name]


def line_of(marker: str) -> int:
    text = (support.HERE / "programs" / f"{FILE}.py").read_text()
    return next(number for number, line in enumerate(text.splitlines(), 1) if f"# {marker}" in line)


@pytest.mark.parametrize("name", support.names(FILE))
def test_same_result_as_on_the_cpu_and_no_guess(results: tuple[Any, Any], name: str) -> None:
    cpu, device = (result[name] for result in results)
    assert "error" not in cpu, cpu["error"]
    assert "error" not in device, device["error"]
    assert device["problems"] == []
    assert [sync for sync in device["syncs"] if sync[-1] is not None] == []
    assert support.close(cpu["result"], device["result"], 1e-4), (cpu["result"], device["result"])


def test_kernels_are_triton_and_matmuls_are_library_calls(simulated: Callable[[str], Any]) -> None:
    kernels = simulated("block_in_float32")["kernels"]
    languages = {language for _, language in kernels}
    assert languages == {"triton", "extern"}
    assert any("native_layer_norm" in name for name, language in kernels if language == "triton")


def test_a_number_that_the_program_makes_on_the_device_is_no_copy(simulated: Callable[[str], Any]) -> None:
    ((name, _),) = simulated("numbers_made_inside")["kernels"]
    assert "lift_fresh" in name  # as an H200 names it
    assert "copy" not in name


def test_a_look_is_on_the_line_that_looks(simulated: Callable[[str], Any]) -> None:
    syncs = {line: (what, value, count) for what, line, value, count, _ in simulated("branch_between_graphs")["syncs"]}
    assert syncs[line_of("look")] == ("item", "2, -2", 2)


def test_a_look_inside_a_captured_graph_is_on_its_own_line(simulated: Callable[[str], Any]) -> None:
    assert line_of("captured look") in [sync[1] for sync in simulated("look_inside_a_graph")["syncs"]]
    assert line_of("predicate") in [sync[1] for sync in simulated("control_flow_in_the_graph")["syncs"]]


def test_what_the_compiler_looks_at_is_not_the_programs(simulated: Callable[[str], Any]) -> None:
    assert simulated("unaligned_matmul")["syncs"] == []
    assert simulated("autotuned_matmul")["syncs"] == []


def test_padding_that_only_the_card_can_time_is_noted_on_its_line(simulated: Callable[[str], Any]) -> None:
    ((topic, text, line),) = simulated("unaligned_matmul")["notes"]
    assert topic == "pad_mm"
    assert "511x511x511" in text
    assert line == line_of("unaligned")


def test_both_forms_of_an_unaligned_matmul_are_told_with_their_estimates(simulated: Callable[[str], Any]) -> None:
    (decision,) = simulated("unaligned_matmul")["decisions"]
    assert (decision["subject"], decision["shown"], decision["basis"]) == ("matmul 511x511x511", "plain", "estimated")
    assert [way["name"] for way in decision["candidates"]] == ["plain", "padded"]
    assert all(way["us"] is None and way["estimated_us"] > 0 for way in decision["candidates"])


def test_a_graph_on_the_cpu_is_compiled_for_the_cpu(simulated: Callable[[str], Any]) -> None:
    assert sorted(language for _, language in simulated("cpu_graph_beside_it")["kernels"]) == ["cpp", "triton"]
