"""Jobs in forked processes: order, crashes, time-outs, and nothing left running."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from inductoscope.compiler.assembling import pool
from inductoscope.compiler.assembling.pool import Lost

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="jobs are forked on Linux only")


def results(jobs: list[Any], work: Any, processes: int = 2, timeout_s: float = 30.0) -> list[Any]:
    done = list(pool.run(jobs, work, processes, timeout_s))
    assert sorted(one.index for one in done) == list(range(len(jobs)))
    return [one.result for one in sorted(done, key=lambda one: one.index)]


@pytest.mark.parametrize("processes", [1, 2, 5, 100])
def test_every_job_has_its_result(processes: int) -> None:
    assert results(list(range(7)), lambda number: number * number, processes) == [n * n for n in range(7)]


def test_nothing_to_do_is_done_at_once() -> None:
    assert results([], lambda job: job) == []


def test_jobs_begin_in_order(tmp_path: Path) -> None:
    def work(number: int) -> int:
        with (tmp_path / "log").open("a") as log:
            log.write(f"{number}\n")
        return number

    results(list(range(6)), work, processes=1)
    assert (tmp_path / "log").read_text().split() == list("012345")


def test_a_large_result_arrives_whole() -> None:
    (found,) = results(["x"], lambda job: job * 5_000_000)
    assert len(found) == 5_000_000


def crash(job: str) -> str:
    if job == "segfault":
        os.kill(os.getpid(), signal.SIGSEGV)
    if job == "exit":
        os._exit(3)
    if job == "raise":
        raise RuntimeError("a defect of the work itself")
    return job


@pytest.mark.parametrize("processes", [1, 2])
def test_a_crash_costs_one_job(processes: int) -> None:
    jobs = ["a", "segfault", "b", "exit", "c", "raise", "d"]
    found = results(jobs, crash, processes)
    assert [one for one in found if not isinstance(one, Lost)] == ["a", "b", "c", "d"]
    assert found[1] == Lost("ended its process by SIGSEGV")
    assert found[3] == Lost("ended its process with status 3")
    assert isinstance(found[5], Lost)


def test_a_hanging_job_is_stopped_with_the_program_it_waits_for(tmp_path: Path) -> None:
    def work(job: str) -> str:
        if job == "hang":
            program = subprocess.Popen(["sleep", "600"])
            (tmp_path / "pid").write_text(str(program.pid))
            try:
                program.wait()
            except BaseException:
                program.kill()
                program.wait()
                raise
        return job

    begun = time.monotonic()
    found = results(["hang", "a", "b"], work, timeout_s=1.0)
    assert found[0] == Lost("took longer than 1 s and was stopped")
    assert found[1:] == ["a", "b"]
    assert time.monotonic() - begun < 30
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_a_job_that_ignores_being_told_to_end_is_killed() -> None:
    def work(job: str) -> str:
        if job == "stubborn":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            threading.Event().wait(600)
        return job

    assert results(["stubborn", "a"], work, processes=1, timeout_s=0.5) == [
        Lost("took longer than 0 s and was stopped"),
        "a",
    ]


def test_nothing_runs_on_when_nobody_wants_the_rest() -> None:
    def work(job: int) -> int:
        if job:
            threading.Event().wait(600)
        return os.getpid()

    found = pool.run([0, 1, 2], work, 2, 60.0)
    first = next(found)
    found.close()
    assert isinstance(first.result, int)
    with pytest.raises(ProcessLookupError):
        os.kill(first.result, 0)
