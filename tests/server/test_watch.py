"""What `inductoscope watch` runs and says after each change, with runs that the test answers."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from inductoscope.protocol.messages import Failure, FailureKind
from inductoscope.protocol.report import Finding, Rung, Severity, Status, TargetReport
from inductoscope.server.check import Runs, Watcher
from inductoscope.server.planning import CheckError, Job, Options
from inductoscope.server.text.terminal import Terminal
from inductoscope.server.watch import Watch
from inductoscope.server.workers import RunOutcome
from support.fake_worker import Script
from support.session import HELLO, TIMEOUT_S, FakeFollower

MODEL = """\
import lib
ENTRY = "f"
def get_inputs(): ...
def f(x):
    print(x)
    return lib.g(x)
"""
BREAK = "Graph break: print."


class FakeRuns(Runs):
    """Runs that the test answers."""

    def __init__(self, options: Options) -> None:
        super().__init__(options, Watcher(), None, 1)
        self.started: list[tuple[Job, asyncio.Future[RunOutcome]]] = []
        self._new: asyncio.Queue[None] = asyncio.Queue()

    async def one(self, job: Job) -> RunOutcome:
        answer: asyncio.Future[RunOutcome] = asyncio.get_running_loop().create_future()
        self.started.append((job, answer))
        self._new.put_nowait(None)
        return await answer

    async def next(self) -> tuple[Job, asyncio.Future[RunOutcome]]:
        await asyncio.wait_for(self._new.get(), TIMEOUT_S)
        return self.started[-1]


class Watched:
    """A watch of one folder with `model.py` and `lib.py` in it."""

    def __init__(self, folder: Path, *paths: str) -> None:
        self.folder = folder
        self.write("model", MODEL)
        self.write("lib", "def g(x): return x\n")
        options = Options(tuple(map(Path, paths or ("model.py",))), device="cpu")
        self.runs, self.follower = FakeRuns(options), FakeFollower()
        self.watch = Watch(options, self.runs, Terminal(frozenset()), self.follower, 1)

    def write(self, name: str, text: str) -> None:
        (self.folder / f"{name}.py").write_text(text)

    async def answer(self, *findings: Finding, files: tuple[str, ...] = (), **changes: Any) -> None:
        job, answer = await self.runs.next()
        target = job.target
        report = TargetReport(target.file, target.name, target.line, "cpu", Rung.ASSEMBLE, Status.COMPILED)
        failure = changes.pop("failure", None)
        report = dataclasses.replace(report, findings=findings, **changes)
        answer.set_result(RunOutcome(report, failure, HELLO, tuple(str(self.folder / file) for file in files)))
        for _ in range(5):
            await asyncio.sleep(0)

    def change(self, *names: str) -> None:
        self.watch.changed(frozenset(str(self.folder / f"{name}.py") for name in names))

    def break_at(self, line: int, message: str = BREAK) -> Finding:
        file = str(self.folder / "model.py")
        return Finding("graph-break", Severity.WARNING, file, line, 4, line, 12, message, Rung.CAPTURE, id="GB0059")


@pytest.fixture
async def watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Watched:
    """A watch whose first check found a break at the print; what it printed was read."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").touch()
    w = Watched(tmp_path)
    w.watch.start()
    await w.answer(w.break_at(5))
    out = capsys.readouterr().out
    assert BREAK in out and out.endswith("watching 2 files for changes; Ctrl-C ends\n")
    return w


async def test_it_follows_the_program_and_the_projects_settings(watched: Watched) -> None:
    names = {str(Path(file).relative_to(watched.folder)) for file in watched.follower.files}
    assert names == {"model.py", "lib.py", "pyproject.toml"}


async def test_an_edit_prints_what_is_gone(watched: Watched, capsys: pytest.CaptureFixture[str]) -> None:
    watched.write("model", MODEL.replace("    print(x)\n", ""))
    watched.change("model")
    await watched.answer()
    assert capsys.readouterr().out == (
        "model.py changed: checking f\nf  model.py:4  CPU  compiled\n"
        "  gone: graph-break GB0059  model.py:5  Graph break: print.\n"
    )


async def test_what_moved_is_not_new(watched: Watched, capsys: pytest.CaptureFixture[str]) -> None:
    watched.write("model", "# why\n" + MODEL.replace("lib.g(x)", "lib.g(-x)"))
    watched.change("model")
    await watched.answer(watched.break_at(6), watched.break_at(7, "Graph break: another."))
    out = capsys.readouterr().out
    assert "gone" not in out
    assert out.endswith("f  model.py:5  CPU  compiled\n  new: graph-break GB0059  model.py:7  Graph break: another.\n")


async def test_comments_recompute_nothing(watched: Watched, capsys: pytest.CaptureFixture[str]) -> None:
    watched.write("lib", "# new\ndef g(x):\n    'What it does.'\n    return x\n")
    watched.change("lib")
    assert capsys.readouterr().out == "lib.py changed: nothing to recompute\n"
    assert len(watched.runs.started) == 1


async def test_a_change_that_makes_no_difference_says_so(watched: Watched, capsys: pytest.CaptureFixture[str]) -> None:
    watched.write("lib", "def g(x): y = x; return y\n")
    watched.change("lib")
    await watched.answer(watched.break_at(5))
    assert capsys.readouterr().out.endswith("  compiles to the same as before\n")


async def test_files_of_others_are_not_spoken_of(watched: Watched, capsys: pytest.CaptureFixture[str]) -> None:
    watched.write("stranger", "x = 1\n")
    watched.change("stranger")
    assert capsys.readouterr().out == ""


async def test_many_files_are_one_run(watched: Watched, capsys: pytest.CaptureFixture[str]) -> None:
    watched.write("lib", "def g(x): return -x\n")
    watched.change("lib", *(f"m{number}" for number in range(300)))
    await watched.answer(watched.break_at(5))
    assert len(watched.runs.started) == 2
    assert capsys.readouterr().out.startswith("lib.py changed: checking f\n")


async def test_a_newer_change_cancels_the_run_that_it_makes_pointless(watched: Watched) -> None:
    watched.write("lib", "def g(x): return -x\n")
    watched.change("lib")
    _, pointless = await watched.runs.next()
    watched.change("lib")
    assert not pointless.cancelled(), "it says what is being run"
    watched.write("lib", "def g(x): return +x\n")
    watched.change("lib")
    await watched.answer()
    assert pointless.cancelled() and len(watched.runs.started) == 3


async def test_a_failure_takes_nothing_away(watched: Watched, capsys: pytest.CaptureFixture[str]) -> None:
    watched.write("lib", "def g(x): raise ValueError\n")
    watched.change("lib")
    why = "The program raised ValueError."
    await watched.answer(status=Status.FAILED, message=why, failure=Failure(FailureKind.RUN, why))
    assert why in capsys.readouterr().out
    watched.write("lib", "def g(x): return x + 1\n")
    watched.change("lib")
    await watched.answer()
    assert "gone: graph-break GB0059" in capsys.readouterr().out, "compared with the last that came through"


async def test_text_that_is_no_python_is_said_once_and_keeps_what_is_known(
    watched: Watched, capsys: pytest.CaptureFixture[str]
) -> None:
    watched.write("model", "def (:\n")
    for _ in range(2):
        watched.change("model")
    out, err = capsys.readouterr()
    assert err.count("Line 1 is not valid Python") == 1 and "gone" not in out
    watched.write("model", MODEL)
    watched.change("model")
    assert capsys.readouterr().out == "model.py changed: nothing to recompute\n"
    assert len(watched.runs.started) == 1


async def test_a_target_that_is_gone(watched: Watched, capsys: pytest.CaptureFixture[str]) -> None:
    watched.write("model", "x = 1\n")
    watched.change("model")
    out, err = capsys.readouterr()
    assert out == "model.py changed: nothing to recompute\nf is gone\n" and "has nothing to compile" in err


async def test_what_only_the_run_could_tell_is_watched_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    w = Watched(tmp_path)
    w.write("plugin", "x = 1\n")
    w.watch.start()
    await w.answer(files=("model.py", "lib.py", "plugin.py"))
    assert str(tmp_path / "plugin.py") in w.follower.files
    w.change("model")
    w.write("plugin", "x = 2\n")
    w.change("plugin")
    await w.answer()
    assert len(w.runs.started) == 2


async def test_a_new_file_of_a_folder_is_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    w = Watched(tmp_path, ".")
    w.watch.start()
    await w.answer()
    w.write("second", MODEL.replace("f(x)", "h(x)").replace('"f"', '"h"'))
    capsys.readouterr()
    w.change("second")
    await w.answer()
    assert capsys.readouterr().out.startswith("second.py changed: checking h\nh  second.py:4  CPU  compiled\n")


async def test_other_settings_are_another_run(watched: Watched) -> None:
    settings = watched.folder / "pyproject.toml"
    settings.write_text('[tool.inductoscope]\nrung = "capture"\n')
    watched.watch.changed(frozenset({str(settings)}))
    job, _ = await watched.runs.next()
    assert watched.runs.request(job).rung is Rung.CAPTURE


async def test_the_end_ends_runs_and_following(watched: Watched) -> None:
    watched.write("lib", "def g(x): return -x\n")
    watched.change("lib")
    _, running = await watched.runs.next()
    await watched.watch.close()
    assert running.cancelled() and watched.follower.closed


async def test_nothing_to_watch_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CheckError, match=r"There is no file no\.py"):
        Watched(tmp_path, "no.py").watch.start()


@pytest.mark.skipif(os.name == "nt", reason="signals")
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 0), (signal.SIGTERM, 128 + signal.SIGTERM)])
def test_the_command_watches_a_real_disk_until_it_is_interrupted(
    tmp_path: Path, number: signal.Signals, status: int
) -> None:
    (tmp_path / "model.py").write_text(MODEL.replace("import lib\n", ""))
    fake = tmp_path / "fake"
    fake.mkdir()
    interpreter = Script().hello().take_run().done().interpreter(fake)
    command = [sys.executable, "-m", "inductoscope", "watch", "model.py", "--device", "cpu", "--python", interpreter]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stderr is not None
        lines = iter(process.stdout)
        assert any("watching 1 file for changes" in line for line in lines)
        (tmp_path / "model.py").write_text(MODEL.replace("import lib\n", "# why\n"))
        assert next(lines) == "model.py changed: nothing to recompute\n"
        process.send_signal(number)
        assert process.wait(timeout=TIMEOUT_S) == status
        assert process.stderr.read() == ""
