"""Benchmarks of many runs, with scripted workers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from inductoscope.protocol import codec
from inductoscope.protocol.bench import RoundTimes
from inductoscope.protocol.report import Benchmark, Timing
from inductoscope.server.bench import command, history
from inductoscope.server.bench.measure import Plan, Session
from inductoscope.server.check import Watcher
from inductoscope.server.planning import CheckError, Options
from inductoscope.server.workers import WorkerPool
from support.fake_worker import Script

RESULT = Benchmark(
    "a card",
    "a clock",
    Timing(20.0, 1.0, 10),
    Timing(10.0, 1.0, 10),
    2.0,
    rounds=tuple(RoundTimes(20.0, 10.0 + index / 1000) for index in range(5)),
)
MODEL = "# inductoscope: x=f32[4]\ndef f(x):\n    return x\n"


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def model(tmp_path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "model.py").write_text(MODEL)
    return folder / "model.py"


def session(plan: Plan, watcher: Watcher | None = None, result: Benchmark = RESULT) -> Session:
    script = Script().hello().take_run().progress("timing").done(benchmark=codec.to_json(result))
    return Session(plan, watcher or Watcher(), script.command())


def git(folder: Path, *words: str) -> None:
    who = {"GIT_AUTHOR_NAME": "n", "GIT_AUTHOR_EMAIL": "e", "GIT_COMMITTER_NAME": "n", "GIT_COMMITTER_EMAIL": "e"}
    subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True, env={**os.environ, **who})


async def test_each_mode_is_a_run_whose_result_is_kept(model):
    checked = await session(Plan(Options((model,)), modes=("default", "max-autotune"))).run()
    assert len(checked.report.targets) == 2
    assert len(history.of_workspace(model).of(model)) == 2


async def test_a_second_result_is_told_with_the_first(model):
    await session(Plan(Options((model,)))).run()
    checked = await session(Plan(Options((model,)))).run()
    change = checked.report.targets[0].benchmark.change
    assert change.ratio == pytest.approx(1.0)
    assert not change.beyond_noise


async def test_a_revision_and_the_work_tree_take_turns(model):
    git(model.parent, "init", "-q")
    git(model.parent, "add", "-A")
    git(model.parent, "commit", "-qm", "one")
    model.write_text(MODEL.replace("return x", "return x + 1"))
    ran: list[str] = []
    watcher = Watcher(on_event=lambda target, message: ran.append(Path(target.file).read_text()))
    checked = await session(Plan(Options((model,)), against="HEAD"), watcher).run()
    old, new = MODEL, model.read_text()
    assert ran == [old, new, new, old]
    (report,) = checked.report.targets
    assert report.file == str(model)
    assert report.benchmark.change.before.startswith("revision HEAD (")
    assert len(report.benchmark.rounds) == 10
    assert not [path for path in Path("/tmp").glob("inductoscope-revision-*") if (path / "model.py").exists()]


async def test_a_revision_that_is_not_there_is_a_sentence(model):
    git(model.parent, "init", "-q")
    with pytest.raises(CheckError, match="git rev-parse --short failed"):
        await session(Plan(Options((model,)), against="no-such-branch")).run()
    with pytest.raises(CheckError, match="git rev-parse --show-toplevel failed"):
        outside = model.parent.parent / "outside.py"
        outside.write_text(MODEL)
        await session(Plan(Options((outside,)), against="HEAD")).run()


@pytest.mark.parametrize("text", ["fast", "default,fast"])
def test_modes_that_torch_does_not_have_are_refused(text):
    with pytest.raises(CheckError, match="fast is none of default"):
        command.modes(text)


def test_modes_are_measured_once_each_in_their_order():
    assert command.modes("max-autotune, default,max-autotune") == ("max-autotune", "default")
    assert command.modes("") == (None,)


def test_the_history_is_printed_as_json(model, capsys):
    from inductoscope.server import cli

    assert cli.main(["bench", str(model), "--history", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"history": []}


async def test_a_revision_is_run_by_the_interpreter_of_the_work_tree(model, monkeypatch):
    """A virtual environment beside the file is in no revision."""
    git(model.parent, "init", "-q")
    git(model.parent, "add", "-A")
    git(model.parent, "commit", "-qm", "one")
    python = model.parent / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    monkeypatch.delenv("CONDA_PREFIX", raising=False)
    used: list[str] = []

    class Recording(WorkerPool):
        def __init__(self, path: str, **options: object) -> None:
            used.append(path)
            super().__init__(path, **options)

    monkeypatch.setattr("inductoscope.server.check.WorkerPool", Recording)
    await session(Plan(Options((model,)), against="HEAD")).run()
    assert used == [str(python)]
