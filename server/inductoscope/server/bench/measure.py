"""`inductoscope bench` without its output: targets and modes to runs, one after the other, and against a revision.

One run at a time, since two would measure each other.  What cannot be measured is a sentence in the report, as in a
check; only settings that make everything pointless raise `CheckError`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from inductoscope.protocol.report import Benchmark, Rung, TargetReport
from inductoscope.server import check, interpreter, planning
from inductoscope.server.bench import noise, revision
from inductoscope.server.bench.remembering import remembered
from inductoscope.server.bench.revision import Revision
from inductoscope.server.check import Checked, Runs, Watcher
from inductoscope.server.planning import CheckError, Job, Options
from inductoscope.server.remote import RunnerError, remote_command
from inductoscope.server.remote.command import PYTHON
from inductoscope.server.workers import RunOutcome, Spare, WorkerCommand, WorkerPool


@dataclass(frozen=True)
class Plan:
    """What to measure: the options of a check, the modes of `torch.compile` (None is the program's own), a revision.

    `runner` is a command that reaches the machine to measure on, in place of the projects' own, `runner_python` the
    interpreter there.
    """

    options: Options
    modes: tuple[str | None, ...] = (None,)
    against: str | None = None
    runner: tuple[str, ...] = ()
    runner_python: str | None = None


@dataclass
class Session:
    """Measures what a plan names; `command` replaces the command line of the workers."""

    plan: Plan
    watcher: Watcher = field(default_factory=Watcher)
    command: WorkerCommand | None = None
    _remote: dict[tuple[str, ...], WorkerPool] = field(default_factory=dict)

    async def run(self) -> Checked:
        """Measure everything.  Raises `CheckError` for settings or revisions that cannot be used."""
        options = replace(self.plan.options, rung=Rung.MEASURE)
        planned = planning.plan(options)
        runs = Runs(options, self.watcher, self.command, 1)
        outcomes: list[RunOutcome] = []
        try:
            if self.plan.against is None or not planned.jobs:
                for job in planned.jobs:
                    outcomes += [await self._one(runs, job, mode) for mode in self.plan.modes]
            else:
                async with revision.files_of(self.plan.against, options.paths[0]) as then:
                    earlier = _jobs_then(options, then)
                    for job in planned.jobs:
                        outcomes += [await self._both(runs, job, earlier, then, mode) for mode in self.plan.modes]
        finally:
            await runs.close()
            for pool in self._remote.values():
                await pool.close()
        return check.checked(outcomes, planned, options)

    async def _one(self, runs: Runs, job: Job, mode: str | None) -> RunOutcome:
        outcome = await self._measured(runs, job, mode)
        torch = outcome.hello.torch if outcome.hello is not None else None
        outcome = replace(outcome, report=await remembered(outcome.report, torch))
        self.watcher.on_target(outcome.report)
        return outcome

    async def _measured(self, runs: Runs, job: Job, mode: str | None) -> RunOutcome:
        if job.scanned.inputs is None:
            return await runs.one(job)
        request = runs.request(job)
        request = replace(request, bench=replace(request.bench, mode=mode))
        pool = self._pool_elsewhere(job)
        if pool is None:
            return await runs.run(job, request)
        request = replace(request, memories=None)  # which are of this machine
        return await pool.run(request, lambda message: self.watcher.on_event(job.target, message))

    def _pool_elsewhere(self, job: Job) -> WorkerPool | None:
        """The pool of the machine that the command line or the project names; None where that is this one."""
        runner = self.plan.runner or job.settings.runner
        if not runner:
            return None
        python = self.plan.runner_python or job.settings.runner_python or PYTHON
        key = (*runner, python, *job.settings.paths)
        if key not in self._remote:
            cwd = str(Path.cwd())
            try:
                command = remote_command(runner, python, (cwd, *job.settings.paths), cwd)
            except RunnerError as error:
                raise CheckError(str(error)) from None
            self._remote[key] = WorkerPool(" ".join((*runner, python)), spare=Spare.NONE, command=command)
        return self._remote[key]

    async def _both(self, runs: Runs, job: Job, earlier: Sequence[Job], then: Revision, mode: str | None) -> RunOutcome:
        """The revision, the work tree, the work tree, the revision: a drift of the machine cancels out."""
        old = _same(job, earlier, then, self.plan.options.python)
        first = await self._measured(runs, old, mode)
        if first.report.benchmark is None or first.report.benchmark.compiled is None:
            raise CheckError(f"{job.target.name} cannot be measured as of {then.name}: {first.report.message}")
        now = await self._measured(runs, job, mode)
        again = await self._measured(runs, job, mode)
        last = await self._measured(runs, old, mode)
        report = _compared(_joined(first.report, last.report), _joined(now.report, again.report), then)
        self.watcher.on_target(report)
        return replace(now, report=report)


def _jobs_then(options: Options, then: Revision) -> list[Job]:
    """What the same paths hold in the revision."""
    there = [path for path in map(then.then, options.paths) if path.exists()]
    if not there:
        raise CheckError(f"{options.paths[0]} is not in revision {then.name}.")
    return planning.plan(replace(options, paths=tuple(there))).jobs


def _same(job: Job, earlier: Sequence[Job], then: Revision, python: str | None) -> Job:
    """The same target in the revision, to be run by the interpreter of today: environments are in no revision."""
    for one in earlier:
        if one.target.name == job.target.name and then.now(one.target.file) == job.target.file:
            try:
                chosen = interpreter.choose(Path(job.target.file).parent, python, job.settings.python)
            except interpreter.InterpreterError as error:
                raise CheckError(str(error)) from None
            return replace(one, settings=replace(one.settings, python=chosen.path))
    raise CheckError(f"{job.target.name} is not in {Path(job.target.file).name} as of revision {then.name}.")


def _joined(first: TargetReport, second: TargetReport) -> TargetReport:
    """Two runs of the same program as one: their rounds together, all else of the first."""
    pairs = zip((first.benchmark, *first.benchmarks), (second.benchmark, *second.benchmarks), strict=False)
    joined = [replace(a, rounds=(*a.rounds, *b.rounds)) for a, b in pairs if a is not None and b is not None]
    if not joined:
        return first
    return replace(first, benchmark=joined[0], benchmarks=tuple(joined[1:]))


def _compared(old: TargetReport, now: TargetReport, then: Revision) -> TargetReport:
    """The report of the work tree with what became of the revision's times."""
    called = f"revision {then.name}" if then.name == then.commit else f"revision {then.name} ({then.commit})"
    before = {one.inputs: one for one in (old.benchmark, *old.benchmarks) if one is not None}

    def changed(benchmark: Benchmark) -> Benchmark:
        earlier = before.get(benchmark.inputs)
        return benchmark if earlier is None else replace(benchmark, change=noise.change(earlier, benchmark, called))

    if now.benchmark is None:
        return now
    return replace(now, benchmark=changed(now.benchmark), benchmarks=tuple(map(changed, now.benchmarks)))
