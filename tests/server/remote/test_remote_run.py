"""Whole benchmarks through a runner's command, with torch."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import psutil
import pytest

from inductoscope.protocol.bench import BenchOptions, Detail
from inductoscope.protocol.messages import FailureKind, Progress, Target, TargetKind
from inductoscope.protocol.report import Agreement, Rung
from inductoscope.server.remote import remote_command
from inductoscope.server.workers import RunOutcome, RunRequest, Spare, WorkerPool

pytestmark = pytest.mark.slow

MODEL = """
import torch
from helper import twice

BACKEND = "eager"
ENTRY = "f"

def f(x):
    return twice(x) + x

def get_inputs():
    return [torch.randn(64)]
"""

# Passes bytes on in pieces of a few hundred, as a slow line does.
SLOW = """
import os, subprocess, sys, threading
child = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

def pump(source, sink):
    while piece := os.read(source, 700):
        os.write(sink, piece)
    os.close(sink)

threading.Thread(target=pump, args=(0, child.stdin.fileno()), daemon=True).start()
pump(child.stdout.fileno(), 1)
sys.exit(child.wait())
"""


def pool_and_request(tmp_path: Path, runner: list[str], helper: str) -> tuple[WorkerPool, RunRequest]:
    home = tmp_path / "home"
    home.mkdir()
    (home / "model.py").write_text(MODEL)
    (home / "helper.py").write_text(helper)
    command = remote_command(runner, sys.executable, (), str(home))
    target = Target(str(home / "model.py"), "f", 8, TargetKind.FUNCTION, "f")
    bench = BenchOptions(detail=Detail.TIMES)
    request = RunRequest(target, "cpu", Rung.MEASURE, bench_seconds=0.05, bench=bench, cwd=str(home))
    return WorkerPool("elsewhere", spare=Spare.NONE, command=command), request


async def measured(tmp_path: Path, runner: list[str], helper: str) -> RunOutcome:
    pool, request = pool_and_request(tmp_path, runner, helper)
    try:
        return await pool.run(request, lambda message: None)
    finally:
        await pool.close()


def local(tmp_path: Path) -> list[str]:
    return ["env", f"INDUCTOSCOPE_AGENT_DIR={tmp_path / 'agent'}", "OMP_NUM_THREADS=1"]


def ends(pid: int) -> bool:
    """Whether a process, which need not be a child, ends soon; it takes a moment to give back the memory of torch."""
    try:
        psutil.Process(pid).wait(timeout=10)
    except psutil.NoSuchProcess:
        return True
    except psutil.TimeoutExpired:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    return True


HELPER = "import torch\n\ndef twice(x):\n    return torch.sin(x) * 2\n"


async def test_a_program_and_what_it_imports_are_measured_there_and_told_with_paths_of_here(tmp_path):
    (tmp_path / "slow.py").write_text(SLOW)
    result = await measured(tmp_path, [sys.executable, str(tmp_path / "slow.py"), *local(tmp_path)], HELPER)
    assert result.failure is None
    home = tmp_path / "home"
    assert result.report.file == str(home / "model.py")
    assert set(result.files) == {str(home / "model.py"), str(home / "helper.py")}
    assert result.report.benchmark.numerics.agreement is Agreement.IDENTICAL
    assert result.report.benchmark.graphs == 1
    assert {path.name for path in home.iterdir()} == {
        "helper.py",
        "model.py",
    }  # not even __pycache__ is written outside


async def test_a_runner_that_dies_half_way_ends_the_run_with_a_sentence(tmp_path):
    helper = "import os\n\nos.kill(os.getppid(), 9)\n\ndef twice(x):\n    return x\n"
    result = await measured(tmp_path, local(tmp_path), helper)
    assert result.failure.kind is FailureKind.CRASH
    assert "in the middle of the run" in result.failure.message


async def test_cancelling_ends_the_worker_there_too(tmp_path):
    marker = tmp_path / "pid"
    helper = (
        f"import os, signal\n\nopen({str(marker)!r}, 'w').write(str(os.getpid()))\n\nsignal.pause()\n"
        "\ndef twice(x):\n    return x\n"
    )
    pool, request = pool_and_request(tmp_path, local(tmp_path), helper)
    importing = asyncio.Event()

    def heard(message: object) -> None:
        if isinstance(message, Progress) and "importing" in message.text:
            importing.set()

    running = asyncio.create_task(pool.run(request, heard))
    await asyncio.wait_for(importing.wait(), 120)
    while not (marker.exists() and marker.read_text()):
        await asyncio.to_thread(os.sched_yield)
    begun = asyncio.get_running_loop().time()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await pool.close()
    assert asyncio.get_running_loop().time() - begun < 10  # within a second where nothing else runs
    assert ends(int(marker.read_text()))
