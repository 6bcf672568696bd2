"""How a folder of model files fares: how many give a report, fail with a sentence, crash the worker or take too long.

    python benchmarks/corpus.py FOLDER [--device sim:H200] [--rung lower] [--every 4] [--limit 50] [--jobs 2]
                                       [--timeout 300] [--memory 8] [--json RESULTS]

The files follow the convention of KernelBench: a class `Model`, `get_inputs()` and, where needed, `get_init_inputs()`.
Each target is one run in a worker of its own, as `inductoscope check` does it.  With `--json` a line of JSON for each
file is added to RESULTS as soon as it is known, and files that RESULTS already tells of are not run again.
"""

from __future__ import annotations

import argparse
import asyncio
import enum
import json
import statistics
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from inductoscope.protocol.messages import FailureKind
from inductoscope.protocol.report import Rung, Status
from inductoscope.server import machine, sources, tally
from inductoscope.server.targets import ScannedTarget, scan
from inductoscope.server.workers import RunOutcome, RunRequest, WorkerPool

MEMORY_SHARE = 0.8
GIB = 1 << 30


class Fate(enum.Enum):
    """What became of one target."""

    REPORT = "with a report"
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
    """One target's fate, its wall time in seconds from getting a worker to the report, and why it failed.

    `facts` are numbers of the report: its status, how many graphs, breaks, kernels, and milliseconds by phase.
    """

    file: Path
    fate: Fate
    seconds: float
    why: str = ""
    facts: dict[str, Any] = field(default_factory=dict)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the corpus; the exit status is 1 when anything crashed or timed out."""
    arguments = _arguments(argv)
    files = sources.python_files(arguments.folder)[:: arguments.every][: arguments.limit]
    results = list(_known(arguments.json)) if arguments.json is not None else []
    results = [result for result in results if result.file in set(files)]
    done = {result.file for result in results}
    results += asyncio.run(_run_all(arguments, [file for file in files if file not in done]))
    print(summary(results))
    return int(any(result.fate in (Fate.CRASHED, Fate.TIMED_OUT) for result in results))


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Check every model file of a folder and count what became of it.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--device", default="cpu", help="cpu (default) or sim:NAME")
    parser.add_argument("--rung", type=Rung, default=Rung.LOWER, help="capture, lower (default) or assemble")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="only the first of every N files")
    parser.add_argument("--limit", type=int, help="only so many files")
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time (default 1)")
    parser.add_argument("--timeout", type=float, default=300.0, help="seconds that one run may take (default 300)")
    parser.add_argument("--memory", type=float, metavar="GIB", help="memory of one run (default: its share of 80 %%)")
    parser.add_argument("--json", type=Path, metavar="RESULTS", help="add a line of JSON for each file to this file")
    return parser.parse_args(argv)


async def _run_all(arguments: argparse.Namespace, files: Sequence[Path]) -> list[Result]:
    share = machine.share_of_memory(MEMORY_SHARE / arguments.jobs)
    memory = share if arguments.memory is None else int(arguments.memory * GIB)
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
            memory_bytes=memory,
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
            if arguments.json is not None:
                _remember(results[-1], arguments.json)
    finally:
        await pool.close()
    return results


def _target(file: Path) -> ScannedTarget | None:
    targets = scan(sources.read_text(file), str(file.resolve())).targets
    return targets[0] if targets else None


def judged(file: Path, outcome: RunOutcome) -> Result:
    """The fate of a finished run, without its time."""
    report = outcome.report
    counts = tally.of(report)
    facts = {
        "status": report.status.value,
        "graphs": counts.graphs,
        "ops": counts.ops,
        "kernels": len(report.kernels),
        "breaks": counts.breaks,
        "phases": {phase.name: round(phase.ms) for phase in report.phases if phase.parent is None},
    }
    if outcome.failure is not None:
        return Result(file, _FATES.get(outcome.failure.kind, Fate.SAID), 0.0, outcome.failure.message, facts)
    if report.status is Status.FAILED:
        return Result(file, Fate.SAID, 0.0, report.message or "", facts)
    return Result(file, Fate.REPORT, 0.0, "", facts)


def _known(path: Path) -> Iterator[Result]:
    """What an earlier run wrote; a line that it did not finish counts for nothing."""
    if not path.exists():
        return
    for text in path.read_text(encoding="utf-8").splitlines():
        try:
            said = json.loads(text)
        except ValueError:
            continue
        yield Result(Path(said["file"]), Fate(said["fate"]), said["seconds"], said["why"], said["facts"])


def _remember(result: Result, path: Path) -> None:
    said = {
        "file": str(result.file),
        "fate": result.fate.value,
        "seconds": round(result.seconds, 2),
        "why": result.why,
        "facts": result.facts,
    }
    with path.open("a", encoding="utf-8") as stream:
        stream.write(json.dumps(said) + "\n")


def line(result: Result) -> str:
    """One target in a line."""
    why = f": {result.why.splitlines()[0]}" if result.why else ""
    return f"{result.seconds:7.1f} s  {result.fate.value:<22}  {result.file}{why}"


def summary(results: Sequence[Result]) -> str:
    """How many of each fate, what those without a report said, how the others ended, and the times of all that ran."""
    counts = Counter(result.fate for result in results)
    statuses = Counter(str(result.facts.get("status")) for result in results if result.fate is Fate.REPORT)
    lines = [f"{len(results)} files", *(f"{counts[fate]:5} {fate.value}" for fate in Fate)]
    if statuses:
        lines.append("reports: " + ", ".join(f"{count} {status}" for status, count in statuses.most_common()))
    lines += (line(result) for result in results if result.fate is not Fate.REPORT)
    times = sorted(result.seconds for result in results if result.seconds)
    if times:
        middle, high = statistics.median(times), times[int(0.95 * (len(times) - 1))]
        at_most = f"{high:.1f} s at the 95th percentile, {times[-1]:.1f} s at most (wall time)"
        lines.append(f"a run took {middle:.1f} s in the median, {at_most}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
