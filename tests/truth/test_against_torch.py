"""The report against torch's own account of the same program, and the watched program against the unwatched one.

Each program runs twice with the backend that it names, eagerly where it names none: once plainly, in a process that
never imports Inductoscope, once the way that a worker runs it.  torch writes its structured trace both times.  What the
report says has to be what the plain trace says, and the two traces have to be the same.
"""

from __future__ import annotations

import functools
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from inductoscope.protocol import codec, input_spec
from inductoscope.protocol.messages import Target
from inductoscope.server.targets import scan
from truth.support import told, traces
from truth.support.account import Account, Place, kernel_calls, steady
from truth.support.launch import start

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

TESTS = Path(__file__).parents[1]
WAIT_S = 1500


def _programs(folder: Path, leave_out: tuple[str, ...] = ()) -> Iterator[tuple[str, Path]]:
    """The programs of a folder that need no GPU, by name."""
    for path in sorted(folder.glob("*.py")):
        helper = path.stem.endswith("_lib") or path.stem in leave_out
        if not helper and 'REQUIRES = "cuda"' not in path.read_text():
            yield f"{folder.name}-{path.stem}", path


EXAMPLES = dict(_programs(TESTS.parent / "examples"))
KINDS = dict(_programs(TESTS / "truth" / "kinds"))
MODELS = dict(_programs(TESTS / "truth" / "models"))
PROGRAMS = {
    **EXAMPLES,
    **MODELS,
    **KINDS,
    **dict(_programs(TESTS / "cases", leave_out=("score", "test_cases"))),
    **dict(_programs(TESTS / "capture" / "programs")),
}
COUNTED = ("frames", "stats", "graph_break", "unimplemented")


def _names_inductor(name: str) -> bool:
    return 'BACKEND = "inductor"' in PROGRAMS[name].read_text()


GENERATED = [*EXAMPLES, *filter(_names_inductor, PROGRAMS)]

every_program = pytest.mark.parametrize("name", PROGRAMS)


@dataclass(frozen=True)
class Runs:
    """The folders of all runs: `plain`, `generated` (examples with the default backend), `watched`, `simulated`."""

    folder: Path

    @functools.cache  # noqa: B019  (lives as long as the session)
    def account(self, kind: str, name: str) -> Account:
        """What torch wrote down in one run."""
        return Account(self.folder / kind / name)

    def report(self, name: str, kind: str = "watched") -> dict[str, Any]:
        """What Inductoscope reports of one run."""
        answer = self.account(kind, name).answer
        assert answer["report"] is not None, answer["failure"]
        return dict(answer["report"])


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """Every program, run plainly and watched; the two go on at the same time."""
    if shutil.which("g++") is None:
        pytest.skip("torch builds C++ kernels for the CPU, which needs a compiler")
    folder = tmp_path_factory.mktemp("runs")
    targets = {name: _target(path) for name, path in PROGRAMS.items()}
    plain = {name: [str(path), targets[name].entry, "eager", _sizes(targets[name])] for name, path in PROGRAMS.items()}
    generated = {name: [*plain[name][:2], "inductor", plain[name][3]] for name in EXAMPLES}
    watched = {name: [codec.to_json(target), "cpu", _rung(name)] for name, target in targets.items()}
    simulated = {name: [watched[name][0], "sim:H200", "lower"] for name in (*EXAMPLES, *MODELS)}
    for batch in (
        (("plain_run.py", "plain", plain), ("watched_run.py", "watched", watched)),
        (("plain_run.py", "generated", generated), ("watched_run.py", "simulated", simulated)),
    ):
        started = [start(script, folder / kind, jobs) for script, kind, jobs in batch]
        assert [process.wait(WAIT_S) for process in started] == [0, 0], folder
    return Runs(folder)


def _rung(name: str) -> str:
    """The small programs of one kind each are about Dynamo, unless they name Inductor."""
    return "capture" if name.startswith(("kinds-", "programs-")) and not _names_inductor(name) else "lower"


def _target(file: Path) -> Target:
    (found,) = scan(file.read_text(), str(file)).targets
    return found.target


def _sizes(target: Target) -> list[list[list[int]]] | None:
    """The sizes of the arguments in the target's comment, each a float32 tensor; None where there is no comment."""
    if target.comment is None:
        return None
    calls = input_spec.expand(input_spec.parse(target.comment))
    return [[[dim.size for dim in argument.value.dims] for argument in call.arguments] for call in calls]


# The report says what torch says.


@every_program
def test_graphs_and_their_operators(name: str, runs: Runs) -> None:
    _assert_same_graphs(told.graphs(runs.report(name)), runs.account("plain", name).graphs())


def _assert_same_graphs(found: list[tuple[str, int]], expected: list[tuple[str, int | None]]) -> None:
    assert [graph for graph, _ in found] == [graph for graph, _ in expected]
    pairs = zip(found, expected, strict=True)
    assert [(graph, ops, counted) for (graph, ops), (_, counted) in pairs if counted not in (None, ops)] == []


@every_program
def test_graph_breaks(name: str, runs: Runs) -> None:
    assert told.breaks(runs.report(name)) == runs.account("plain", name).breaks()


@every_program
def test_recompilations(name: str, runs: Runs) -> None:
    expected = runs.account("plain", name).recompiles()
    library = {one.compile_id for one in expected if one.function == Place("library", 0, one.function.function)}
    assert told.recompiles(runs.report(name), library) == expected


@every_program
def test_recompile_limit(name: str, runs: Runs) -> None:
    assert told.limit(runs.report(name)) == runs.account("plain", name).limit()


@every_program
def test_functions_left_alone(name: str, runs: Runs) -> None:
    assert told.skipped(runs.report(name)) == runs.account("plain", name).skipped()


@every_program
def test_guards(name: str, runs: Runs) -> None:
    assert told.guards(runs.report(name)) == runs.account("plain", name).guards()


@every_program
def test_an_error_ends_the_program_in_both(name: str, runs: Runs) -> None:
    watched = runs.account("watched", name).answer
    failed = watched["failure"] is not None or watched["report"]["status"] == "failed"
    assert failed == (runs.account("plain", name).answer["raised"] is not None)


@pytest.mark.parametrize("name", GENERATED)
def test_generated_code_and_kernels(name: str, runs: Runs) -> None:
    """Byte for byte.  Of a backward pass that the program never asks for the report has more than torch compiled."""
    account = runs.account("generated" if name in EXAMPLES else "plain", name)
    report = runs.report(name)
    found, forward, backward = told.wrappers(report), told.kernels(report, "forward"), told.kernels(report, "backward")
    written = account.output_code()
    assert set(found) == set(written)
    for graph, codes in written.items():
        assert found[graph][: len(codes)] == codes
        assert forward.get(graph, []) == kernel_calls(codes[0])
        assert len(codes) == 1 or backward.get(graph, []) == kernel_calls(codes[1])


@pytest.mark.parametrize("name", [*EXAMPLES, *MODELS])
def test_what_dynamo_finds_is_the_same_on_a_simulated_gpu(name: str, runs: Runs) -> None:
    account = runs.account("plain", name)
    if account.refused():
        pytest.skip("which operators a backend refuses depends on the device")
    report = runs.report(name, "simulated")
    _assert_same_graphs(told.graphs(report), account.graphs())
    assert told.breaks(report) == account.breaks()
    assert [one["compile_id"] for one in report["recompiles"]] == [one.compile_id for one in account.recompiles()]


# Watching changes nothing.


@every_program
def test_the_trace_is_that_of_an_unwatched_run(name: str, runs: Runs) -> None:
    names = traces.DYNAMO | (traces.INDUCTOR if _names_inductor(name) else frozenset())
    plain, watched = (traces.items(runs.account(kind, name), names) for kind in ("plain", "watched"))
    assert traces.difference(plain, watched) == ([], [])


@every_program
def test_torch_counts_what_it_counts_unwatched(name: str, runs: Runs) -> None:
    plain, watched = (_counters(runs.account(kind, name)) for kind in ("plain", "watched"))
    assert watched == plain


def _counters(account: Account) -> dict[str, dict[str, int]]:
    counters = account.answer["counters"]
    return {kind: {steady(text): count for text, count in counters[kind].items()} for kind in COUNTED}
