"""What is told of the recorded programs, whose sources say what happens in them; the same on every version of torch."""

from __future__ import annotations

from pathlib import Path

import pytest

from inductoscope.protocol.report import GuardFact, Phase, Status, TargetReport
from inductoscope.server.traces.reports import Detail
from inductoscope.server.traces.run import TraceReport
from traces.support import VERSIONS, report

LINES = (Path(__file__).parent / "programs" / "train.py").read_text().splitlines()


def line(text: str) -> int:
    """The first line with this text."""
    return next(number for number, content in enumerate(LINES, start=1) if text in content)


@pytest.fixture(scope="module", params=VERSIONS)
def cold(request: pytest.FixtureRequest, recorded: Path, sources: Path) -> TraceReport:
    return report(recorded / request.param / "cold.log", sources, Detail.GUARDS, Detail.KERNELS, Detail.PHASES)


@pytest.fixture(scope="module", params=VERSIONS)
def both(request: pytest.FixtureRequest, recorded: Path, sources: Path) -> TraceReport:
    """Both ranks of one run; `train.py` is left out, so that its processes are not among them."""
    folder = recorded / f"{request.param}-ranks"
    folder.mkdir(exist_ok=True)
    for rank in (0, 1):
        text = (recorded / request.param / f"rank{rank}.log").read_bytes()
        (folder / f"rank{rank}.log").write_bytes(text)
    return report(folder, sources)


def target(found: TraceReport, name: str) -> TargetReport:
    (one,) = [target for target in found.targets if target.name == name]
    return one


def test_breaks_are_distinct_and_on_the_users_line(cold: TraceReport) -> None:
    told = {(one.found.line, one.found.code): one for one in cold.breaks}
    assert set(told) == {(line("if hidden.sum()"), "GB0170"), (line('print("shifting")'), "GB0059")}
    shifting = told[line('print("shifting")'), "GB0059"]
    assert shifting.found.count >= 2  # for the caller with the helper inlined, and for the helper
    assert {place.function for place in shifting.found.frames} <= {"forward", "shifted"}
    assert told[line("if hidden.sum()"), "GB0170"].found.hints


def test_recompiles_are_a_story(cold: TraceReport) -> None:
    stories = {story.function: story for story in cold.stories}
    assert set(stories) == {"scaled", "counted"}
    scaled = stories["scaled"].steps
    assert [step.guard is None for step in scaled] == [True, False, False]
    assert "size mismatch at index 0. expected 3, actual 5" in str(scaled[1].guard)
    assert scaled[2].guard == "the guard `factor == 2.0` failed"
    assert scaled[2].line == line("torch.sin(x) * factor")
    assert scaled[2].others == 1
    assert all(step.ms > 0 for step in scaled)
    assert [step.result for step in stories["counted"].steps] == ["compiled"] * 3 + ["gave up"]


def test_the_limit_is_an_error_at_the_function(cold: TraceReport) -> None:
    counted = target(cold, "counted")
    assert counted.recompile_limit is not None
    assert counted.recompile_limit.limit == 3
    (finding,) = [one for one in counted.findings if one.code == "recompile-limit"]
    assert finding.line in (line("def counted"), line("def counted") - 1)  # or its decorator


def test_errors_are_on_lines(cold: TraceReport) -> None:
    whole = target(cold, "whole")
    assert whole.status is Status.FAILED
    assert [(one.code, one.line) for one in whole.findings] == [("compile-error", line('print("not allowed")'))]
    pinned = target(cold, "pinned")
    assert pinned.status is Status.FAILED
    assert "ConstraintViolationError" in str(pinned.message)
    assert {(one.source, one.value, one.line) for one in pinned.specializations} == {
        ("x.size()[0]", "6", line("x.reshape(6, -1)"))
    }


def test_who_called_what(cold: TraceReport) -> None:
    calls = {call.line: call for call in cold.calls if call.exact}
    training = calls[line("model(torch.ones(4, 8))")]
    assert training.text.startswith("model(")
    functions = [(one.function, one.resumed) for one in training.compilations]
    assert functions[:2] == [("Block.forward", False), ("Block.forward", True)]
    assert ("shifted", False) in functions
    every = [one.id for call in cold.calls for one in call.compilations]
    assert len(every) == len(set(every)) == cold.processes[0].compilations


def test_kernels_and_the_lines_behind_them(cold: TraceReport) -> None:
    block = target(cold, "Block.forward")
    made = {line("self.norm("), line("if hidden"), line("hidden * 2"), line("shifted(hidden) + x")}
    lines = [{place.line for place in kernel.lines} for kernel in block.kernels]
    assert all(lines)
    assert set().union(*lines) <= made
    assert {kernel.phase for kernel in block.kernels} == {Phase.FORWARD, Phase.BACKWARD}
    assert all(kernel.source for kernel in block.kernels if kernel.name.startswith("cpp_"))
    assert len(block.wrappers) == sum(bool(graph) for graph in {(k.graph, k.phase) for k in block.kernels})
    assert block.device == "cpu"


def test_guards_with_the_line_that_made_them(cold: TraceReport) -> None:
    guards = target(cold, "scaled").guards
    made = [one for one in guards if one.text == "factor == 2.0"]
    assert [(one.compile_id.rpartition("/")[2], one.line) for one in made] == [
        ("0", line("torch.sin(x) * factor")),
        ("1", line("torch.sin(x) * factor")),
    ]
    sizes = {one.compile_id[-1]: one.expected for one in guards if (one.source, one.kind) == ("x", "size")}
    assert sizes == {"0": "[3, 4]", "1": "[any, 4]", "2": "[any, 4]"}
    assert any(_is_divisible(one) for one in target(cold, "halves").guards)


def _is_divisible(guard: GuardFact) -> bool:
    return "% 2" in str(guard.text) or "2*" in str(guard.text)


def test_time_by_function_adds_up(cold: TraceReport) -> None:
    total = sum(cost.ms for cost in cold.costs)
    assert cold.costs[0].function == "Block.forward"
    for cost in cold.costs:
        parts = cost.dynamo_ms + cost.aot_ms + cost.inductor_ms + cost.backward_ms
        assert parts == pytest.approx(cost.ms, rel=1e-6)
    assert sum(call.ms for call in cold.calls) == pytest.approx(total)
    assert cold.costs[0].warm_ms is None
    assert cold.costs[0].cold_ms


def test_phases_of_the_timeline(cold: TraceReport) -> None:
    phases = {one.name: one for one in cold.phases}
    assert phases["entire_frame_compile"].count >= 10
    assert all(one.ms >= -1e-6 for one in cold.phases)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_second_run_is_warm_and_the_two_are_compared(version: str, recorded: Path, sources: Path) -> None:
    folder = recorded / f"{version}-twice"
    folder.mkdir(exist_ok=True)
    for run in ("cold", "warm"):
        (folder / f"{run}.log").write_bytes((recorded / version / f"{run}.log").read_bytes())
    found = report(folder, sources)
    scaled = next(cost for cost in found.costs if cost.function == "scaled")
    assert scaled.compilations == 6
    assert scaled.warm_ms is not None
    assert scaled.cold_ms is not None
    assert scaled.warm_ms < scaled.cold_ms
    assert len(found.breaks) == 2
    assert all(len(one.processes) == 2 for one in found.breaks)


def test_why_a_cache_missed(cold: TraceReport) -> None:
    of_scaled = {
        one.compile_id[-1]: one.because
        for one in cold.cache_misses
        if (one.function, one.cache) == ("scaled", "fx_graph")
    }
    assert of_scaled["0"] == ("there is no earlier key of this graph in the trace",)
    assert of_scaled["1"][0].startswith("against ")
    assert any(part.startswith("example_inputs[0]") for part in of_scaled["1"])


def test_ranks_that_differ(both: TraceReport) -> None:
    differing = {(one.what, one.function): one.values for one in both.differences}
    breaks = differing["graph breaks", "reduced"]
    assert sorted(breaks.values()) == [(0,), (1,)]
    assert breaks["nothing"] == (0,)
    assert ("order of collectives", None) not in differing


def test_collectives_inside_of_their_graph(both: TraceReport) -> None:
    text = (Path(__file__).parent / "programs" / "ranks.py").read_text().splitlines()
    expected = next(number for number, content in enumerate(text, start=1) if ".all_reduce(" in content)
    (fact,) = [one for one in both.collectives if one.function == "reduced"]
    assert (fact.name, fact.line, fact.processes) == ("all_reduce", expected, ("rank 0", "rank 1"))
