"""Warm processes: what is forked from one is a worker like any other.  Real processes without torch play the parts."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest

from inductoscope.protocol.messages import Errand, FailureKind, Target, TargetKind
from inductoscope.protocol.report import Rung
from inductoscope.server.workers import RunOutcome, RunRequest, Spare, WorkerPool, nursery
from inductoscope.server.workers import pool as pool_module
from inductoscope.server.workers.nursery import suits
from support.warm_stand_in import command

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux only")

TARGET = Target("/project/model.py", "Model.forward", 7, TargetKind.MODULE_CLASS, "Model")


def request(comment: str = "pid", **changes: object) -> RunRequest:
    """A run that does what `comment` says, see `warm_stand_in`."""
    target = Target(TARGET.file, TARGET.name, 7, TargetKind.MODULE_CLASS, "Model", comment=comment)
    return RunRequest(target, "cpu", Rung.LOWER, **{"timeout_s": 60.0, **changes})  # type: ignore[arg-type]


@pytest.fixture
async def pool() -> AsyncIterator[WorkerPool]:
    made = WorkerPool("python", spare=Spare.FORK, command=command())
    yield made
    await made.close()


async def do(pool: WorkerPool, comment: str = "pid", **changes: object) -> RunOutcome:
    return await pool.run(request(comment, **changes), lambda message: None)


async def said(pool: WorkerPool, comment: str, **changes: object) -> str:
    outcome = await do(pool, comment, **changes)
    assert outcome.failure is None, outcome.failure
    assert outcome.report.message is not None
    return outcome.report.message


def has_ended(pid: int) -> bool:
    """Whether there is no such process; one that nobody reaped has ended too."""
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


async def grown(pool: WorkerPool, comment: str = "pid") -> RunOutcome:
    """Runs until one is forked from the last layer."""
    while True:
        outcome = await do(pool, comment)
        if outcome.hello is not None and outcome.hello.warm is not None and len(outcome.hello.warm) > 1:
            return outcome
        await asyncio.sleep(0)


async def test_each_run_is_a_process_of_its_own_with_the_same_parent(pool: WorkerPool) -> None:
    await grown(pool)
    first, second = [await said(pool, "pid") for _ in range(2)]
    assert first.split()[0] != second.split()[0]
    assert first.split()[1] == second.split()[1]


async def test_the_hello_says_what_was_ready(pool: WorkerPool) -> None:
    first = await do(pool)
    assert first.hello is not None and first.hello.warm == ("torch",)
    later = await grown(pool)
    assert later.hello is not None and later.hello.warm == ("torch", "cpu")
    assert later.hello.pid == int((later.report.message or "").split()[0])


async def test_a_run_leads_a_group_and_a_session_of_its_own(pool: WorkerPool) -> None:
    pid, group, session = (await said(pool, "group")).split()
    assert pid == group == session


async def test_a_run_holds_its_own_descriptors_only(pool: WorkerPool) -> None:
    await grown(pool)
    assert await said(pool, "descriptors") == "null pipe pipe pipe pipe"


async def test_a_run_works_in_its_folder(pool: WorkerPool, tmp_path: Path) -> None:
    assert await said(pool, "cwd", cwd=str(tmp_path)) == str(tmp_path)
    assert await said(pool, "cwd", cwd="/") == "/"


async def test_a_folder_that_is_not_there_is_told_as_ever(pool: WorkerPool) -> None:
    outcome = await do(pool, cwd="/no/such/folder")
    assert outcome.failure is not None and outcome.failure.kind is FailureKind.NO_INTERPRETER
    assert "/no/such/folder" in outcome.failure.message


async def test_the_mark_of_a_run_is_where_the_system_shows_it(pool: WorkerPool) -> None:
    marks = [await said(pool, "mark") for _ in range(2)]
    assert marks[0] != marks[1]
    for mark in marks:
        of_system, of_python = mark.split()
        assert of_system == of_python


async def test_daemons_that_a_run_leaves_behind_are_ended(pool: WorkerPool, tmp_path: Path) -> None:
    await said(pool, f"daemon {tmp_path / 'pid'}")
    assert has_ended(int((tmp_path / "pid").read_text()))


@pytest.mark.parametrize("how", ["signal 11", "exit 7"])
async def test_a_run_that_dies_is_told_and_takes_nothing_with_it(pool: WorkerPool, how: str) -> None:
    await grown(pool)
    before = (await said(pool, "pid")).split()[1]
    outcome = await do(pool, how)
    assert outcome.failure is not None and outcome.failure.kind is FailureKind.CRASH
    assert ("SIGSEGV" if how == "signal 11" else "exit code 7") in outcome.failure.message
    assert "last words" in outcome.failure.message
    assert (await said(pool, "pid")).split()[1] == before


async def test_a_run_that_hangs_is_ended_at_its_time_limit(pool: WorkerPool) -> None:
    outcome = await do(pool, "hang", timeout_s=1.0)
    assert outcome.failure is not None and outcome.failure.kind is FailureKind.TIMEOUT


async def test_a_run_over_its_memory_is_ended(pool: WorkerPool) -> None:
    outcome = await do(pool, "memory 300", memory_bytes=150 << 20)
    assert outcome.failure is not None and outcome.failure.kind is FailureKind.MEMORY


async def test_cancelling_ends_the_run_and_its_children(pool: WorkerPool, tmp_path: Path) -> None:
    file = tmp_path / "pids"
    task = asyncio.create_task(do(pool, f"hang-with-child {file}"))
    while not (file.exists() and len(file.read_text().split()) == 2):
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    for pid in map(int, file.read_text().split()):
        assert has_ended(pid)


async def test_runs_at_once_do_not_mix(tmp_path: Path) -> None:
    pool = WorkerPool("python", spare=Spare.FORK, command=command(), max_running=4)
    try:
        wanted = [tmp_path / str(number) for number in range(4)]
        for folder in wanted:
            folder.mkdir()
        found = await asyncio.gather(*(said(pool, "cwd", cwd=str(folder)) for folder in wanted))
        assert found == [str(folder) for folder in wanted]
    finally:
        await pool.close()


async def test_a_warm_process_that_dies_is_replaced(pool: WorkerPool) -> None:
    first = int((await said(pool, "pid")).split()[1])
    os.kill(first, signal.SIGKILL)
    assert int((await said(pool, "pid")).split()[1]) != first


async def test_a_run_goes_on_when_the_process_that_it_was_forked_from_ends(pool: WorkerPool) -> None:
    assert await said(pool, "kill-parent") == "killed"
    assert (await do(pool)).failure is None


async def test_a_run_that_dies_after_that_is_told_without_a_cause(pool: WorkerPool) -> None:
    outcome = await do(pool, "kill-parent-and-end")
    assert outcome.failure is not None and outcome.failure.kind is FailureKind.CRASH
    assert "ended before it was done, and so did the process that it was forked from" in outcome.failure.message


async def test_warm_processes_are_made_anew_when_what_is_installed_changes(tmp_path: Path) -> None:
    installed = tmp_path / "site-packages"
    installed.mkdir()
    pool = WorkerPool("python", spare=Spare.FORK, command=command(installed))
    try:
        await grown(pool)
        parents = [(await said(pool, "pid")).split()[1] for _ in range(2)]
        (installed / "torch-9.dist-info").mkdir()
        parents.append((await said(pool, "pid")).split()[1])
        assert parents[0] == parents[1] != parents[2]
    finally:
        await pool.close()


async def test_closing_ends_every_warm_process() -> None:
    pool = WorkerPool("python", spare=Spare.FORK, command=command())
    parent = int(((await grown(pool)).report.message or "").split()[1])
    first = psutil.Process(parent).parent()
    assert first is not None
    await pool.close()
    while not (has_ended(parent) and has_ended(first.pid)):  # whoever inherits the inner one may be slow to bury it
        await asyncio.sleep(0)


async def test_warm_processes_end_with_a_server_that_is_killed() -> None:
    program = (
        "import asyncio, time\n"
        "from server.workers.test_warm import *\n"
        "async def main():\n"
        "    pool = WorkerPool('python', spare=Spare.FORK, command=command())\n"
        "    print(((await grown(pool)).report.message or '').split()[1], flush=True)\n"
        "    time.sleep(600)\n"
        "asyncio.run(main())\n"
    )
    tests = Path(__file__).resolve().parents[2]
    server = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", program), stdout=asyncio.subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(tests)}
    )
    assert server.stdout is not None
    layer = psutil.Process(int(await server.stdout.readline()))
    first = layer.parent()
    server.kill()
    await server.wait()
    assert first is not None
    while not (has_ended(layer.pid) and has_ended(first.pid)):
        await asyncio.sleep(0)


async def test_idle_warm_processes_are_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nursery, "IDLE_S", 0.0)
    pool = WorkerPool("python", spare=Spare.FORK, command=command())
    try:
        parent = int((await said(pool, "pid")).split()[1])
        while not has_ended(parent):
            await asyncio.sleep(0)
        assert (await do(pool)).failure is None
    finally:
        await pool.close()


async def test_a_process_that_must_not_be_forked_leaves_the_runs_to_started_workers() -> None:
    pool = WorkerPool("python", spare=Spare.FORK, command=command(unfit="threads run in it"))
    try:
        outcome = await do(pool)
        assert outcome.failure is None
        assert outcome.hello is not None and outcome.hello.warm is None
    finally:
        await pool.close()


async def test_the_problem_of_an_interpreter_is_told_as_ever() -> None:
    pool = WorkerPool("python", spare=Spare.FORK, command=command(problem="no torch here"))
    try:
        outcome = await do(pool)
        assert outcome.failure is not None and outcome.failure.kind is FailureKind.NO_TORCH
        assert outcome.report.message == "no torch here"
    finally:
        await pool.close()


@pytest.mark.parametrize("spare", [Spare.FORK, Spare.NONE])
async def test_an_interpreter_that_hangs_while_it_starts_is_given_up_in_time(
    spare: Spare, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool_module, "START_ALLOWANCE_S", 0.5)
    hanging = [sys.executable, "-c", "import time; time.sleep(600)"]
    pool = WorkerPool("python", spare=spare, command=lambda read_fd, write_fd: hanging)
    try:
        outcome = await do(pool, timeout_s=0.5)
        assert outcome.failure is not None and outcome.failure.kind is FailureKind.TIMEOUT
        assert "did not get ready within 1 s" in outcome.failure.message
    finally:
        await pool.close()


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, True),
        ({"device": "sim:H200"}, True),
        ({"device": "cuda"}, False),
        ({"rung": Rung.MEASURE}, False),
        ({"errand": Errand.FIGURES}, False),
        ({"cwd": "/no/such/folder"}, False),
    ],
)
def test_what_is_forked_and_what_is_not(changes: dict[str, object], expected: bool) -> None:
    asked = {"target": TARGET, "device": "cpu", "rung": Rung.LOWER, **changes}
    assert suits(RunRequest(**asked)) is expected  # type: ignore[arg-type]
