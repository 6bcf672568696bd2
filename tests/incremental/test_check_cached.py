"""`inductoscope check` where an earlier run has the answer: against a worker that counts how often it is started."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from inductoscope.protocol import codec
from inductoscope.protocol.report import Finding, Rung, Severity, Status
from inductoscope.server.check import Runs, Watcher, check
from inductoscope.server.cli import main
from inductoscope.server.planning import Caching, Options, plan
from inductoscope.server.recall import FOLDER_VARIABLE, Recall
from inductoscope.server.result_store import ResultStore
from support.fake_worker import Script

MODEL = 'ENTRY = "f"\ndef get_inputs(): ...\ndef f(x):\n    print(x)\n    return x\n'


class OneEnvironment:
    """Everything is installed as it was."""

    async def name(self, words: tuple[str, ...]) -> str:
        return "one"


class Checks:
    """Checks of `model.py`; `starts` counts the workers."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.store = folder, ResultStore(folder / "cache")
        self.write(MODEL)

    @property
    def starts(self) -> int:
        return len(list(self.folder.glob("pid-*")))

    def write(self, text: str) -> None:
        path = self.folder / "model.py"
        path.write_text(text)
        os.utime(path, (time.time() - 100,) * 2)

    async def lines(self, rung: Rung = Rung.ASSEMBLE, line: int = 4) -> list[int]:
        """The lines of the findings; a worker that is started finds one at `line`."""
        path = str(self.folder / "model.py")
        finding = Finding("graph-break", Severity.WARNING, path, line, 4, line, 12, "print", Rung.CAPTURE)
        script = Script().hello().take_run().write_pid(self.folder / f"pid-{self.starts}").finding(finding)
        script = script.done(findings=[codec.to_json(finding)])
        options = Options((self.folder / "model.py",), rung=rung, device="cpu", caching=Caching.ON)
        recall = Recall(self.store, OneEnvironment())  # type: ignore[arg-type]
        runs = Runs(options, Watcher(), script.command(), 1, recall=recall)
        try:
            outcomes = [await runs.one(job) for job in plan(options).jobs]
        finally:
            await runs.close()
        assert [outcome.report.status for outcome in outcomes] == [Status.COMPILED]
        return [finding.line for outcome in outcomes for finding in outcome.report.findings]


@pytest.fixture
def checks(tmp_path: Path) -> Checks:
    return Checks(tmp_path)


async def test_a_second_check_starts_no_worker(checks: Checks) -> None:
    assert [await checks.lines(), await checks.lines()] == [[4], [4]]
    assert checks.starts == 1


async def test_a_comment_moves_the_answer_and_an_edit_runs(checks: Checks) -> None:
    await checks.lines()
    checks.write("# why\n" + MODEL)
    assert await checks.lines() == [5] and checks.starts == 1
    checks.write(MODEL.replace("return x", "return -x"))
    assert await checks.lines(line=4) == [4] and checks.starts == 2
    checks.write(MODEL)
    assert await checks.lines() == [4] and checks.starts == 2


async def test_measuring_is_always_done(checks: Checks) -> None:
    for _ in range(2):
        await checks.lines(rung=Rung.MEASURE)
    assert checks.starts == 2


async def test_whoever_does_not_ask_for_it_gets_a_new_run(checks: Checks, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FOLDER_VARIABLE, str(checks.folder / "cache"))
    script = Script().hello().take_run().done()
    for _ in range(2):
        checked = await check(Options((checks.folder / "model.py",), device="cpu"), command=script.command())
        assert [target.cached for target in checked.report.targets] == [None]
    assert not (checks.folder / "cache").exists()


def test_the_command_tells_what_is_kept_and_removes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "results"))
    ResultStore(tmp_path / "results").put("a" * 64, "b" * 64, {"kept": True})
    assert main(["cache", "info", "--json"]) == 0
    results, kernels = json.loads(capsys.readouterr().out)
    assert (results["files"], results["folder"]) == (1, str(tmp_path / "results")) and kernels["files"] == 0
    assert main(["cache"]) == 0
    assert "1 result, " in capsys.readouterr().out
    assert main(["cache", "clear"]) == 0
    assert "removed 1 result" in capsys.readouterr().out
    assert not list((tmp_path / "results").rglob("*.result"))


def test_the_command_says_when_nothing_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv(FOLDER_VARIABLE, "off")
    assert main(["cache"]) == 0
    assert "INDUCTOSCOPE_CACHE is off" in capsys.readouterr().out
