"""How a folder of model files fares: how many are checked, fail with a sentence, crash the worker or take too long.

    python benchmarks/corpus.py FOLDER [--device sim:H200] [--limit 50] [--jobs 2] [--timeout 300] [--rung lower]

The files follow the convention of KernelBench: a class `Model`, `get_inputs()` and, where needed, `get_init_inputs()`.
Each target is one run in a worker of its own, as `inductoscope check` does it.
"""

from __future__ import annotations

import argparse
import asyncio
import enum
import statistics
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from inductoscope.protocol.messages import FailureKind
from inductoscope.protocol.report import Rung, Status
from inductoscope.server import machine, sources
from inductoscope.server.targets import ScannedTarget, scan
from inductoscope.server.workers import RunOutcome, RunRequest, WorkerPool

MEMORY_SHARE = 0.8


class Fate(enum.Enum):
    """What became of one target."""

    CHECKED = "checked"
    SAID = "failed with a sentence"
    CRASHED = "crashed"
    TIMED_OUT = "timed out"


_FATES = {
    FailureKind.CRASH: Fate.CRASHED,
    FailureKind.INTERNAL: Fate.CRASHED,
    FailureKind.TIMEOUT: Fate.TIMED_OUT,
}


@dataclass(frozen=True)
class Result:
    """One target's fate, its wall time in seconds from getting a worker to the report, and why it failed."""

    file: Path
    fate: Fate
    seconds: float
    why: str = ""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the corpus; the exit status is 1 when anything crashed or timed out."""
    arguments = _arguments(argv)
    files = sources.python_files(arguments.folder)[: arguments.limit]
    results = asyncio.run(_run_all(arguments, files))
    print(summary(results))
    return int(any(result.fate in (Fate.CRASHED, Fate.TIMED_OUT) for result in results))


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Check every model file of a folder and count what became of it.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--device", default="cpu", help="cpu (default) or sim:NAME")
    parser.add_argument("--rung", type=Rung, default=Rung.LOWER, help="capture, lower (default) or assemble")
    parser.add_argument("--limit", type=int, help="only so many files")
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time (default 1)")
    parser.add_argument("--timeout", type=float, default=300.0, help="seconds that one run may take (default 300)")
    return parser.parse_args(argv)


async def _run_all(arguments: argparse.Namespace, files: Sequence[Path]) -> list[Result]:
    pool = WorkerPool(sys.executable, max_running=arguments.jobs)
    slots = asyncio.Semaphore(arguments.jobs)

    async def one(file: Path, found: ScannedTarget | None) -> Result:
        if found is None or found.inputs is None:
            return Result(file, Fate.SAID, 0.0, "no target with inputs was found in it")
        request = RunRequest(
            target=found.target,
            device=arguments.device,
            rung=arguments.rung,
            timeout_s=arguments.timeout,
            memory_bytes=machine.share_of_memory(MEMORY_SHARE / arguments.jobs),
            cwd=str(Path.cwd()),
        )
        async with slots:
            began = time.perf_counter()
            outcome = await pool.run(request, lambda _: None)
            return replace(judged(file, outcome), seconds=time.perf_counter() - began)

    results = []
    try:
        jobs = [asyncio.ensure_future(one(file, _target(file))) for file in files]
        for done in asyncio.as_completed(jobs):
            results.append(await done)
            print(line(results[-1]), flush=True)
    finally:
        await pool.close()
    return results


def _target(file: Path) -> ScannedTarget | None:
    targets = scan(sources.read_text(file), str(file.resolve())).targets
    return targets[0] if targets else None


def judged(file: Path, outcome: RunOutcome) -> Result:
    """The fate of a finished run, without its time."""
    if outcome.failure is not None:
        return Result(file, _FATES.get(outcome.failure.kind, Fate.SAID), 0.0, outcome.failure.message)
    if outcome.report.status is Status.FAILED:
        return Result(file, Fate.SAID, 0.0, outcome.report.message or "")
    return Result(file, Fate.CHECKED, 0.0)


def line(result: Result) -> str:
    """One target in a line."""
    why = f": {result.why.splitlines()[0]}" if result.why else ""
    return f"{result.seconds:7.1f} s  {result.fate.value:<22}  {result.file}{why}"


def summary(results: Sequence[Result]) -> str:
    """How many of each fate, and the times of those that ran."""
    counts = Counter(result.fate for result in results)
    times = sorted(result.seconds for result in results if result.seconds)
    lines = [f"{counts[fate]:5} {fate.value}" for fate in Fate]
    if times:
        lines.append(
            f"a run took {statistics.median(times):.1f} s in the median, {times[int(0.9 * (len(times) - 1))]:.1f} s at "
            f"the 90th percentile, {times[-1]:.1f} s at most (wall time)"
        )
    return "\n".join([f"{len(results)} files", *lines])


if __name__ == "__main__":
    sys.exit(main())
