"""Which answers of earlier runs hold for a new question, told with the lines of now."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from inductoscope.protocol.messages import Errand, Failure, FailureKind, Target, TargetKind
from inductoscope.protocol.report import Finding, Rung, Severity, Status, TargetReport
from inductoscope.server import imports
from inductoscope.server.meaning import Meaning
from inductoscope.server.recall import Program, Question, Recall
from inductoscope.server.result_store import ResultStore
from inductoscope.server.workers.run import RunOutcome, RunRequest
from support.session import HELLO

MODEL = """\
import helper

def f(x):
    print(x)
    return helper.g(x)
"""
PYTHON = ("/usr/bin/python3",)


class FixedEnvironments:
    """Stands for what is installed."""

    def __init__(self, name: str | None = "torch 2.13.0") -> None:
        self.current = name

    async def name(self, words: tuple[str, ...]) -> str | None:
        return self.current


class World:
    """Files on disk, what is installed, and a store."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environments = FixedEnvironments()
        self.recall = Recall(ResultStore(folder / "cache"), self.environments)  # type: ignore[arg-type]
        self.write("model.py", MODEL)
        self.write("helper.py", "def g(x): return x\n")
        self.write("plugin.py", "SCALE = 2\n")

    def path(self, name: str) -> str:
        return str(self.folder / name)

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)
        long_ago = time.time() - 1000
        os.utime(self.folder / name, (long_ago, long_ago))

    def text(self, path: str) -> str | None:
        return Path(path).read_text() if Path(path).exists() else None

    def meanings(self, paths: Iterable[str]) -> Mapping[str, Meaning]:
        texts = ((path, self.text(path)) for path in paths)
        return {path: imports.read(text).meaning for path, text in texts if text is not None}

    def question(self, comment: str | None = None, **changes: Any) -> Question:
        target = Target(self.path("model.py"), "f", 3, TargetKind.FUNCTION, "f", comment=comment)
        request = dataclasses.replace(RunRequest(target, "cpu", Rung.ASSEMBLE, cwd=str(self.folder)), **changes)
        closure = self.meanings([self.path("model.py"), self.path("helper.py")])
        return Question(request, PYTHON, Program(closure, self.meanings, self.text))

    def outcome(self, line: int = 4, files: tuple[str, ...] = (), **changes: Any) -> RunOutcome:
        path = self.path("model.py")
        finding = Finding("graph-break", Severity.WARNING, path, line, 4, line, 12, f"At line {line}.", Rung.CAPTURE)
        report = TargetReport(path, "f", 3, "cpu", Rung.ASSEMBLE, Status.PARTIAL, findings=(finding,))
        names = tuple(map(self.path, ("model.py", "helper.py", *files)))
        return RunOutcome(dataclasses.replace(report, **changes), None, HELLO, names)

    async def keep(self, outcome: RunOutcome | None = None, question: Question | None = None) -> None:
        await self.recall.keep(question or self.question(), outcome or self.outcome(), time.time())

    async def lines(self, **changes: Any) -> list[int] | None:
        """The lines of the findings that are recalled, or None."""
        found = await self.recall.find(self.question(**changes))
        return None if found is None else [finding.line for finding in found.report.findings]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


async def test_the_same_question_has_the_same_answer_and_says_how_old_it_is(world: World) -> None:
    assert await world.lines() is None
    await world.keep()
    found = await world.recall.find(world.question())
    assert found is not None and found.hello == HELLO and found.files == world.outcome().files
    assert found.report.cached is not None and 0 <= found.report.cached.age_s < 60
    assert dataclasses.replace(found.report, cached=None) == world.outcome().report


async def test_comments_and_layout_only_move_the_answer(world: World) -> None:
    await world.keep()
    world.write("model.py", "# why\n\n" + MODEL.replace("print(x)", "print(\n        x,  # this\n    )"))
    found = await world.recall.find(world.question())
    assert found is not None
    (finding,) = found.report.findings
    assert (finding.line, finding.end_line, finding.end_column) == (6, 8, 5)
    assert (found.report.line, finding.message) == (5, "At line 6.")


@pytest.mark.parametrize(
    "changes",
    [
        {"device": "sim:H200"},
        {"rung": Rung.LOWER},
        {"cwd": "/elsewhere"},
        {"search_paths": ("/src",)},
        {"what_if": ("x=f32[3]",)},
        {"probe_seconds": 20.0},
        {"comment": "x=f32[3]"},
    ],
    ids=lambda changes: next(iter(changes)),
)
async def test_another_way_to_run_is_another_question(world: World, changes: Any) -> None:
    await world.keep()
    assert await world.lines(**changes) is None
    assert await world.lines() == [4]


@pytest.mark.parametrize("name", ["model.py", "helper.py"])
async def test_another_program_is_another_question_until_the_edit_is_undone(world: World, name: str) -> None:
    await world.keep()
    before = (world.folder / name).read_text()
    world.write(name, before.replace("return", "return -"))
    assert await world.lines() is None
    await world.keep(world.outcome(line=5))
    assert await world.lines() == [5]
    world.write(name, before)
    assert await world.lines() == [4]


async def test_what_is_installed_counts(world: World) -> None:
    await world.keep()
    world.environments.current = "torch 2.14.0"
    assert await world.lines() is None
    world.environments.current = "torch 2.13.0"
    assert await world.lines() == [4]


async def test_without_a_known_environment_nothing_is_kept_or_found(world: World) -> None:
    await world.keep()
    world.environments.current = None
    assert await world.lines() is None
    await world.keep(world.outcome(line=5))
    world.environments.current = "torch 2.13.0"
    assert await world.lines() == [4]


async def test_files_that_only_the_run_tells_of_count_too(world: World) -> None:
    await world.keep(world.outcome(files=("plugin.py",)))
    assert await world.lines() == [4]
    world.write("plugin.py", "SCALE = 3\n")
    assert await world.lines() is None
    await world.keep(world.outcome(line=5, files=("plugin.py",)))
    world.write("plugin.py", "SCALE = 2  # as before\n")
    assert await world.lines() == [4]
    (world.folder / "plugin.py").unlink()
    assert await world.lines() is None


async def test_environment_variables_that_the_program_names_count(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.write("helper.py", "import os\ndef g(x): return x if os.getenv('MY_FLAG') else -x\n")
    monkeypatch.delenv("MY_FLAG", raising=False)
    await world.keep()
    monkeypatch.setenv("MY_FLAG", "1")
    assert await world.lines() is None
    monkeypatch.delenv("MY_FLAG")
    monkeypatch.setenv("ANOTHER", "1")
    assert await world.lines() == [4]


@pytest.mark.parametrize("status", [Status.FAILED, Status.NO_INPUTS, Status.NOT_RUN])
async def test_what_did_not_come_through_is_not_kept(world: World, status: Status) -> None:
    await world.keep(world.outcome(status=status))
    assert await world.lines() is None


async def test_a_failure_is_not_kept(world: World) -> None:
    await world.keep(dataclasses.replace(world.outcome(), failure=Failure(FailureKind.CRASH, "It died.")))
    assert await world.lines() is None


@pytest.mark.parametrize("changes", [{"rung": Rung.MEASURE}, {"errand": Errand.DECISIONS}])
async def test_measurements_and_errands_are_neither_kept_nor_found(world: World, changes: Any) -> None:
    await world.keep(question=world.question(**changes))
    assert await world.lines(**changes) is None


async def test_what_was_recalled_is_not_kept_as_new(world: World) -> None:
    await world.keep()
    found = await world.recall.find(world.question())
    assert found is not None
    (path,) = (world.folder / "cache").rglob("*.result")
    before = path.read_bytes()
    await world.keep(found)
    assert path.read_bytes() == before


@pytest.mark.parametrize("name", ["model.py", "helper.py", "plugin.py"])
async def test_a_file_that_was_written_during_the_run_makes_the_answer_unsure(world: World, name: str) -> None:
    began = time.time() - 1
    question = world.question()
    (world.folder / name).touch()
    await world.recall.keep(question, world.outcome(files=("plugin.py",)), began)
    assert await world.lines() is None


async def test_a_change_that_nobody_had_noticed_makes_the_answer_unsure(world: World) -> None:
    question = world.question()
    world.write("helper.py", "def g(x): return -x\n")
    await world.keep(question=question)
    assert await world.lines() is None
    world.write("helper.py", "def g(x): return x\n")
    assert await world.lines() is None


async def test_a_result_that_this_version_cannot_read_is_removed(world: World) -> None:
    await world.keep()
    (path,) = (world.folder / "cache").rglob("*.result")
    key, _, variant = path.stem.partition("-")
    ResultStore(world.folder / "cache").put(key, variant, {"of": "another time"})
    assert await world.lines() is None
    assert not path.exists()


async def test_without_a_store_there_is_nothing(world: World) -> None:
    recall = Recall(None)
    await recall.keep(world.question(), world.outcome(), time.time())
    assert await recall.find(world.question()) is None
