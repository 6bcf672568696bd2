"""`inductoscope watch` without its output: check once, then again whatever a change of files makes out of date.

Knows neither arguments nor terminals.  A run that fails takes nothing away: the next one that comes through is compared
with the last one that did.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from inductoscope.protocol.messages import Target
from inductoscope.protocol.report import Status, TargetReport
from inductoscope.server import difference, freshness, meaning, planning, shift
from inductoscope.server.check import Runs
from inductoscope.server.difference import Difference
from inductoscope.server.documents import read_source
from inductoscope.server.folders import PROJECT_FILE
from inductoscope.server.graph import as_of
from inductoscope.server.meaning import Meaning
from inductoscope.server.planning import CheckError, Job, Options, Plan
from inductoscope.server.ports import Follower
from inductoscope.server.positions import Text
from inductoscope.server.scheduler import Job as Task
from inductoscope.server.scheduler import Scheduler

_UNCHECKED = {Status.FAILED, Status.NO_INPUTS, Status.NOT_RUN}


class Screen(Protocol):
    """Who is told."""

    def whole(self, report: TargetReport) -> None:
        """The first report of a target, or one that cannot be compared with another."""

    def differs(self, found: Difference) -> None:
        """A target was checked again."""

    def changed(self, paths: tuple[str, ...], targets: tuple[Target, ...]) -> None:
        """Files changed, and these targets are checked again because of that; perhaps none."""

    def gone(self, target: Target) -> None:
        """A target is not there any more."""

    def problem(self, sentence: str) -> None:
        """Something cannot be checked."""

    def waiting(self, files: int) -> None:
        """Everything is checked; so many files are watched for changes."""


@dataclass(frozen=True)
class _State:
    """A target: the program of its newest run, and the last one that came through with the texts it was about."""

    job: Job
    closure: dict[str, Meaning]
    fingerprint: str
    good: TargetReport | None = None
    texts: dict[str, Text] | None = None


class Watch:
    """Follows the files of some targets."""

    def __init__(self, options: Options, runs: Runs, screen: Screen, follower: Follower, at_once: int) -> None:
        self._options = options
        self._runs = runs
        self._screen = screen
        self._follower = follower
        self._dependencies = runs.dependencies
        self._states: dict[str, _State] = {}
        self._planned: frozenset[str] = frozenset()
        self._problems: frozenset[str] = frozenset()
        self._watched = -1
        self._scheduler: Scheduler[str] = Scheduler(self._work, self._job_changed, limit=at_once)

    def start(self) -> None:
        """Check everything.  Raises `CheckError` for settings that cannot be used, and when there is no file."""
        plan = planning.plan(self._options)
        if not plan.files:
            raise CheckError(" ".join(plan.problems))
        self._adopt(plan)
        self._tell_problems(plan)
        self._settle()

    def changed(self, paths: frozenset[str]) -> None:
        """These files were written, made or removed."""
        concerned = paths & self._dependencies.files
        self._dependencies.changed(paths)
        try:
            plan = planning.plan(self._options)
        except CheckError as error:
            self._screen.problem(str(error))
            return
        outdated = self._adopt(plan)
        if outdated or concerned:
            self._screen.changed(tuple(sorted(concerned or paths)), outdated)
        self._drop_those_not_in(plan)
        self._tell_problems(plan)
        self._settle()

    async def close(self) -> None:
        """End everything that runs."""
        self._follower.close()
        await self._scheduler.close()
        await self._runs.close()

    def _adopt(self, plan: Plan) -> tuple[Target, ...]:
        """Ask for what is out of date; returns the targets that this starts runs of."""
        self._planned = frozenset(plan.files)
        outdated = tuple(job.target for job in plan.jobs if self._is_outdated(job))
        for target in outdated:
            self._scheduler.request(target.key, "changed")
        return outdated

    def _drop_those_not_in(self, plan: Plan) -> None:
        kept = {job.target.key for job in plan.jobs}
        for key, state in list(self._states.items()):
            if key not in kept and state.job.target.file not in plan.unread:
                self._scheduler.cancel(key, "its target is gone")
                del self._states[key]
                self._screen.gone(state.job.target)

    def _tell_problems(self, plan: Plan) -> None:
        for problem in plan.problems:
            if problem not in self._problems:
                self._screen.problem(problem)
        self._problems = frozenset(plan.problems)

    def _is_outdated(self, job: Job) -> bool:
        """Whether the newest run of a target, over or not, was about another program; it becomes about this one."""
        key = job.target.key
        state, closure = self._states.get(key), self._closure(job)
        fingerprint = self._fingerprint(job, closure)
        if state is not None and state.fingerprint == fingerprint:
            self._states[key] = replace(state, job=job)
            return False
        state = state or _State(job, closure, fingerprint)
        self._states[key] = replace(state, job=job, closure=closure, fingerprint=fingerprint)
        return True

    async def _work(self, task: Task[str]) -> None:
        state = self._states[task.key]
        texts = {path: Text(read_source(path) or "") for path in state.closure}
        try:
            outcome = await self._runs.one(state.job)
        except CheckError as error:
            self._screen.problem(str(error))
            return
        state = self._learned(state, outcome.files)
        report = outcome.report
        if outcome.failure is not None or report.status in _UNCHECKED:
            self._screen.whole(report)
        else:
            self._show(state, report, texts)
            state = replace(state, good=report, texts=texts)
        self._states[task.key] = state

    def _show(self, state: _State, report: TargetReport, texts: dict[str, Text]) -> None:
        if state.good is None or state.good.device != report.device:
            self._screen.whole(report)
            return
        self._screen.differs(difference.between(state.good, report, _moved(state.texts or {}, texts)))

    def _learned(self, state: _State, files: Iterable[str]) -> _State:
        """The state after a run, whose program includes the files that only the run could tell of."""
        self._dependencies.learn(state.job.target.file, files)
        closure = as_of(state.closure, self._closure(state.job))
        return replace(state, closure=closure, fingerprint=self._fingerprint(state.job, closure))

    def _closure(self, job: Job) -> dict[str, Meaning]:
        return self._runs.closure(job)

    def _fingerprint(self, job: Job, closure: dict[str, Meaning]) -> str:
        request = self._runs.request(job)
        python = self._options.python or job.settings.python or ""
        program = meaning.program(closure)
        device = request.device if request.own is None else f"{request.device} {request.own.identity}"
        return freshness.fingerprint(job.target, (device, request.rung.value, python), program)

    def _job_changed(self, _: str) -> None:
        if not self._scheduler.keys:
            self._settle()

    def _settle(self) -> None:
        files = self._dependencies.files | self._planned
        self._follower.follow(files | set(map(_project_file, self._planned)))
        if not self._scheduler.keys and len(files) != self._watched:
            self._watched = len(files)
            self._screen.waiting(len(files))


def _moved(before: dict[str, Text], after: dict[str, Text]) -> difference.Moved:
    shifts = {path: shift.between(text, after[path]) for path, text in before.items() if path in after}
    return lambda file, line: shifts[file].forward(line) if file in shifts else line


def _project_file(file: str) -> str:
    """The settings that hold for a file, or those that would if they were there."""
    beside = [folder / PROJECT_FILE for folder in Path(file).parents]
    return str(next((path for path in beside if path.is_file()), beside[0]))


async def watch(make: Callable[[], Watch]) -> None:
    """Watch until cancelled.  Raises `CheckError` for settings that cannot be used."""
    watched = make()
    try:
        watched.start()
        await asyncio.Event().wait()
    finally:
        await watched.close()
