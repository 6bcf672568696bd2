"""`inductoscope check` without its output: targets to runs, runs to a report.

Knows neither arguments nor terminals.  What cannot be checked is a sentence in `Checked.problems`, never an exception;
only settings that make everything pointless raise `CheckError`.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from inductoscope.protocol._version import __version__
from inductoscope.protocol.messages import Message, Reuse, Target
from inductoscope.protocol.report import Report, Rung, Status, TargetReport
from inductoscope.server import interpreter, machine, planning, reuse
from inductoscope.server.assembly import texts
from inductoscope.server.config import Probing
from inductoscope.server.documents import read_input
from inductoscope.server.graph import Dependencies, Edges
from inductoscope.server.meaning import Meaning
from inductoscope.server.planning import Caching, CheckError, Empty, Job, Options, Plan
from inductoscope.server.recall import Program, Question, Recall, users
from inductoscope.server.workers import RunOutcome, RunRequest, Spare, WorkerCommand, WorkerPool, memory

DEFAULT_TIMEOUT_S = 300.0
MOST_AT_ONCE = 8
MEMORY_SHARE = 0.8
"""The part of the machine's memory that a run may hold when nothing is configured."""


@dataclass(frozen=True)
class Checked:
    """The report, a sentence for each thing that could not be checked, and the files that were looked at."""

    report: Report
    problems: tuple[str, ...]
    files: tuple[str, ...] = ()


@dataclass(frozen=True)
class Watcher:
    """Who wants to know meanwhile: of each finished target in the order of the files, and of what is going on."""

    on_target: Callable[[TargetReport], None] = lambda report: None
    on_event: Callable[[Target, Message], None] = lambda target, message: None


async def check(options: Options, watcher: Watcher | None = None, command: WorkerCommand | None = None) -> Checked:
    """Check everything that `options` names.

    `command` replaces the command line of the workers.  Raises `CheckError` for settings that cannot be used.
    """
    watcher = watcher or Watcher()
    plan = planning.plan(options)
    several = sum(job.scanned.inputs is not None for job in plan.jobs) > 1
    spare = Spare.SERIES if several else Spare.NONE
    runs = Runs(options, watcher, command, at_once(options, len(plan.jobs)), spare)
    try:
        outcomes = await _in_order([runs.one(job) for job in plan.jobs], watcher.on_target)
    finally:
        await runs.close()
    return checked(outcomes, plan, options)


def checked(outcomes: list[RunOutcome], plan: Plan, options: Options) -> Checked:
    """What the runs of a plan came to."""
    unchecked = [
        why for why in _unchecked(outcomes, options.empty) if not any(said.endswith(why) for said in plan.problems)
    ]
    problems = [*plan.problems, *unchecked]
    return Checked(_report(outcomes, problems), tuple(problems), tuple(sorted(plan.files - plan.unread)))


class Runs:
    """Runs jobs in one pool for each interpreter, which has ready for the next run what `spare` says."""

    def __init__(
        self,
        options: Options,
        watcher: Watcher,
        command: WorkerCommand | None,
        at_once: int,
        spare: Spare = Spare.NONE,
        recall: Recall | None = None,
    ) -> None:
        self.dependencies = Dependencies(read_input)
        self._recall = recall or (users() if options.caching is Caching.ON else Recall(None))
        self._options = options
        self._watcher = watcher
        self._command = command
        self._pools: dict[str, WorkerPool] = {}
        self._at_once = at_once
        self._spare = spare
        self._slots = asyncio.Semaphore(at_once)
        self._memory = machine.share_of_memory(MEMORY_SHARE / at_once)
        self._waiting: Counter[WorkerPool] = Counter()

    async def one(self, job: Job) -> RunOutcome:
        """Run a job; one without inputs is told instead.  Raises `CheckError` when its interpreter is not there."""
        request = self.request(job)
        if job.scanned.inputs is None:
            return RunOutcome(_without_inputs(job, request), None, None)
        question = self._question(job, request)
        found = await self._recall.find(question)
        if found is not None:
            return found
        began = time.time()
        outcome = await self.run(job, request)
        await self._recall.keep(question, outcome, began)
        return outcome

    async def run(self, job: Job, request: RunRequest) -> RunOutcome:
        """Do `request` with the interpreter of the job.  Raises `CheckError` when that is not there."""
        pool = self._pool(job)
        self._waiting[pool] += 1
        async with self._slots:
            self._waiting[pool] -= 1
            return await pool.run(request, lambda message: self._watcher.on_event(job.target, message))

    async def close(self) -> None:
        """End the pools."""
        for pool in self._pools.values():
            await pool.close()

    def request(self, job: Job) -> RunRequest:
        """What is asked of the worker."""
        options, settings = self._options, job.settings
        device, own = options.device_in(settings)
        return RunRequest(
            target=job.target,
            device=device,
            own=own,
            rung=options.rung or settings.rung or Rung.ASSEMBLE,
            timeout_s=options.timeout_s or settings.timeout_s or DEFAULT_TIMEOUT_S,
            memory_bytes=settings.memory_bytes or self._memory,
            cwd=str(Path.cwd()),
            search_paths=settings.paths,
            bench_seconds=options.bench_seconds,
            bench=options.bench,
            what_if=options.what_if,
            probe_seconds=(options.probe or settings.probe or Probing.ON).seconds,
            assembling=texts.order(self._at_once, options.kernel),
            reuse=reuse.order() if options.caching is Caching.ON else Reuse(),
            memories=memory.users(),
        )

    def closure(self, job: Job, edges: Edges = Edges.ALL) -> dict[str, Meaning]:
        """What the files of a job's program say, by path."""
        return self.dependencies.closure(job.target.file, (str(Path.cwd()), *job.settings.paths), edges)

    def _question(self, job: Job, request: RunRequest) -> Question:
        """What to look up before a run, and to keep it under after."""
        program = Program(self.closure(job, Edges.READ), self.dependencies.meanings, read_input)
        return Question(request, (self._interpreter(job),), program)

    def _interpreter(self, job: Job) -> str:
        try:
            return interpreter.choose(Path(job.target.file).parent, self._options.python, job.settings.python).path
        except interpreter.InterpreterError as error:
            raise CheckError(str(error)) from None

    def _pool(self, job: Job) -> WorkerPool:
        path = self._interpreter(job)
        if path not in self._pools:
            self._pools[path] = self._new_pool(path)
        return self._pools[path]

    def _new_pool(self, path: str) -> WorkerPool:
        """A pool that starts the next run's worker ahead, unless that would disturb a measurement."""
        measures = self._options.rung is Rung.MEASURE

        def more() -> bool:
            return self._waiting[pool] > 0 and not measures

        pool = WorkerPool(path, max_running=self._at_once, spare=self._spare, command=self._command, more=more)
        return pool


def at_once(options: Options, jobs: int) -> int:
    """How many runs go on together: each keeps about two cores busy, and measurements must not disturb each other."""
    if options.rung is Rung.MEASURE:
        return 1
    return max(1, min((os.cpu_count() or 1) // 2, jobs, MOST_AT_ONCE))


async def _in_order(runs: list[Awaitable[RunOutcome]], on_target: Callable[[TargetReport], None]) -> list[RunOutcome]:
    """Run all at once; tell of each as soon as it and all before it are done."""
    tasks = [asyncio.ensure_future(run) for run in runs]
    outcomes: list[RunOutcome] = []
    try:
        for task in tasks:
            outcomes.append(await task)
            on_target(outcomes[-1].report)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return outcomes


def _without_inputs(job: Job, request: RunRequest) -> TargetReport:
    """The report of a target that must not be run, with what the scan says of it."""
    target = job.target
    findings = tuple(
        finding
        for finding in job.scan.findings
        if finding.code == "scan-error" or (finding.code == "no-inputs" and finding.line == target.line)
    )
    message = findings[0].message if findings else None
    return TargetReport(
        target.file,
        target.name,
        target.line,
        request.device,
        Rung.SCAN,
        Status.NO_INPUTS,
        message=message,
        findings=findings,
    )


def _unchecked(outcomes: list[RunOutcome], empty: Empty) -> list[str]:
    """Why targets could not be checked; those without inputs count only when there are no others."""
    failed = [outcome.failure.message for outcome in outcomes if outcome.failure is not None]
    refused = [outcome.report for outcome in outcomes if outcome.report.status is Status.NOT_RUN]
    failed += [report.message for report in refused if report.message is not None]
    idle = [outcome.report for outcome in outcomes if outcome.report.status is Status.NO_INPUTS]
    if len(idle) == len(outcomes) and empty is Empty.PROBLEM:
        failed += [report.message for report in idle if report.message is not None]
    return list(dict.fromkeys(failed))


def _report(outcomes: list[RunOutcome], problems: list[str]) -> Report:
    hello = next((outcome.hello for outcome in outcomes if outcome.hello is not None), None)
    return Report(
        inductoscope=__version__,
        torch=hello.torch if hello else None,
        triton=hello.triton if hello else None,
        python=hello.python if hello else None,
        targets=tuple(outcome.report for outcome in outcomes),
        message=" ".join(problems) or None,
    )
