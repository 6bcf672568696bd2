"""Runs of targets: which are needed, whether an earlier answer holds, and what becomes of their answers.

A check is looked up first (`recall`), which takes no worker and waits for none; only what is not found is run.  Knows
the state and the scheduler; nothing of what is shown.
"""

from __future__ import annotations

import asyncio
import enum
import functools
import itertools
import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TypeAlias

from inductoscope.protocol import messages
from inductoscope.protocol.messages import Message
from inductoscope.server import requests, resting, runs
from inductoscope.server.clock import Timer
from inductoscope.server.ports import Editor, Progress
from inductoscope.server.recall import Question, Recall
from inductoscope.server.runs import Plan, Purpose
from inductoscope.server.scheduler import Job, Scheduler
from inductoscope.server.settings import Trust
from inductoscope.server.snapshot import Activity, TargetView
from inductoscope.server.state import State
from inductoscope.server.workers.run import RunOutcome

logger = logging.getLogger("inductoscope.session")

Key: TypeAlias = "tuple[str, Purpose]"
"""What a job is for: a target's key and why it is run."""

LOOKUPS = 4
"""Lookups at once; each reads a file and holds a report."""


class Answer(enum.Enum):
    """Which answers will do."""

    KEPT = "an earlier run's, if the program is the same"
    NEW = "a new run's"


class Checking:
    """Runs targets of `state`, and calls `changed` after anything became different."""

    def __init__(self, state: State, editor: Editor, recall: Recall, changed: Callable[[], None]) -> None:
        self._state = state
        self._editor = editor
        self._recall = recall
        self._changed = changed
        self.started = False
        count = itertools.count(1)
        self._runs: Scheduler[Key] = Scheduler(self._run, self._job_changed, generations=count)
        self._lookups: Scheduler[Key] = Scheduler(self._look_up, self._job_changed, limit=LOOKUPS, generations=count)
        self._plans: dict[Key, Plan] = {}
        self._keeping: set[asyncio.Task[None]] = set()
        self._resting: dict[str, Timer] = {}

    def request(self, key: str, purpose: Purpose, cause: str, answer: Answer = Answer.KEPT) -> None:
        """Have a target run, if that is possible at all; an older run of it for the same purpose ends."""
        state = self._state
        if not self.started or state.trust is not Trust.TRUSTED or state.targets[key].scanned.inputs is None:
            return
        job = (key, purpose)
        if purpose is Purpose.CHECK and answer is Answer.KEPT:
            self._runs.cancel(job, f"a newer request: {cause}")
            self._lookups.request(job, cause)
        else:
            self._lookups.cancel(job, f"a newer request: {cause}")
            self._runs.request(job, cause)

    def request_outdated(self, keys: Iterable[str], cause: Callable[[TargetView], str]) -> None:
        """Run those targets whose last answer, or the one that is being made, is about another program.

        An answer that still holds is told with the lines of now.
        """
        now = self._state.snapshot().text_now
        for key in keys:
            view = self._state.targets[key]
            fingerprint = self._state.programs.fingerprint(view.target)
            plan = self._plans.get((key, Purpose.CHECK))
            if plan is not None and plan.fingerprint == fingerprint:
                continue
            settled = view.settled
            if view.retry == fingerprint and not self._rests(key):
                self.request(key, Purpose.CHECK, cause(view), Answer.NEW)
            elif settled is not None and settled.fingerprint == fingerprint:
                self._end(key, "the last answer holds again")
                self._state.targets[key] = runs.relaid(self._state.targets[key], fingerprint, now)
            elif (undone := runs.undone(view, fingerprint)) is not None:
                self._end(key, "the answer before the last holds again")
                self._state.targets[key] = runs.relaid(replace(undone, activity=Activity.IDLE), fingerprint, now)
            elif self._rests(key):
                self._end(key, "its last runs crashed")
            else:
                self.request(key, Purpose.CHECK, cause(view))

    def forget(self, key: str, cause: str) -> None:
        """A target is not of interest any more."""
        for purpose in Purpose:
            self._runs.cancel((key, purpose), cause)
            self._lookups.cancel((key, purpose), cause)
        self._state.targets.pop(key, None)

    def stop(self, cause: str) -> None:
        """End everything that runs or waits."""
        for scheduler in (self._lookups, self._runs):
            for job in scheduler.keys:
                scheduler.cancel(job, cause)

    def is_busy(self, path: str) -> bool:
        """Whether a target of that file runs or waits."""
        keys = {key for key, _ in (*self._runs.keys, *self._lookups.keys)}
        return any(key in keys for key in self._state.keys_of(path))

    async def close(self) -> None:
        """End everything, once what was learnt is kept."""
        for timer in self._resting.values():
            timer.cancel()
        await self._lookups.close()
        await self._runs.close()
        await asyncio.gather(*self._keeping, return_exceptions=True)

    def _rests(self, key: str) -> bool:
        """Whether a target is left alone for now; it is looked at again when its rest is over."""
        left = resting.left_s(self._state.targets[key], self._state.clock.time())
        if left <= 0:
            return False
        if key not in self._resting:
            self._resting[key] = self._state.clock.call_later(left, functools.partial(self._rest_is_over, key))
        return True

    def _rest_is_over(self, key: str) -> None:
        del self._resting[key]
        if key in self._state.targets:
            self.request_outdated([key], lambda _: "tried again after crashes")
            self._changed()

    def _end(self, key: str, cause: str) -> None:
        """What is being found out about a program that is no more."""
        self._lookups.cancel((key, Purpose.CHECK), cause)
        self._runs.cancel((key, Purpose.CHECK), cause)

    async def _look_up(self, job: Job[Key]) -> None:
        key, _ = job.key
        plan = self._plan(job)
        try:
            question = requests.question(self._state, plan)
            outcome = await self._recall.find(question) if question is not None else None
            if outcome is not None:
                logger.info("recalled key=%s generation=%d cause=%s", key, job.generation, job.cause)
                self._finish(key, plan, outcome)
        finally:
            self._over(job.key, plan)
        if outcome is None:
            self._runs.request(job.key, job.cause)

    async def _run(self, job: Job[Key]) -> None:
        key, purpose = job.key
        plan = self._plan(job)
        question = requests.question(self._state, plan) if purpose is Purpose.CHECK else None
        cancel = functools.partial(self._runs.cancel, job.key, "cancelled by the person")
        progress = self._editor.progress(f"{purpose.title} {plan.request.target.name}", cancel)
        began, moment = time.time(), self._state.clock.time()
        ending = "cancelled"
        try:
            runner = self._state.folders.runner(plan.request.target.file)
            outcome = await runner.run(plan.request, functools.partial(self._heard, key, plan, progress))
            self._finish(key, plan, outcome)
            now = self._state.clock.time()
            view = replace(self._state.targets[key], took_s=now - moment)
            self._state.targets[key] = view if purpose is Purpose.MEASURE else resting.after_run(view, outcome, now)
            ending = outcome.report.status.value
        finally:
            self._over(job.key, plan)
            progress.end(ending)
        if question is not None:
            self._keep(question, outcome, began)

    def _keep(self, question: Question, outcome: RunOutcome, began: float) -> None:
        task = asyncio.create_task(self._recall.keep(question, outcome, began))
        self._keeping.add(task)
        task.add_done_callback(self._kept)

    def _kept(self, task: asyncio.Task[None]) -> None:
        self._keeping.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("a result could not be kept", exc_info=error)

    def _plan(self, job: Job[Key]) -> Plan:
        key, purpose = job.key
        plan = requests.plan(self._state, key, purpose, job.generation, job.cause)
        self._plans[job.key] = plan
        return plan

    def _finish(self, key: str, plan: Plan, outcome: RunOutcome) -> None:
        state = self._state
        state.environment = runs.learned(state.environment, outcome)
        plan = requests.completed(state, plan, outcome)
        state.targets[key] = runs.finished(state.targets[key], plan, outcome, state.clock.time())

    def _over(self, job: Key, plan: Plan) -> None:
        """A run is over in whatever way."""
        if self._plans.get(job) is plan:
            del self._plans[job]
        if job[0] in self._state.targets:
            self._state.targets[job[0]] = runs.over(self._state.targets[job[0]])
        self._changed()

    def _heard(self, key: str, plan: Plan, progress: Progress, message: Message) -> None:
        job = self._runs.running((key, plan.purpose))
        if job is None or job.generation != plan.generation:
            return  # it was cancelled, and its process has not noticed yet
        self._state.targets[key] = runs.heard(self._state.targets[key], plan, message, self._state.clock.time())
        if isinstance(message, messages.Progress):
            progress.report(message.text)
        self._changed()

    def _job_changed(self, job: Key) -> None:
        key, _ = job
        view = self._state.targets.get(key)
        if view is not None:
            activity, cause = self._activity(key)
            self._state.targets[key] = replace(view, activity=activity, cause=cause or view.cause)
        self._changed()

    def _activity(self, key: str) -> tuple[Activity, str | None]:
        """What is going on with a target, and why."""
        measuring = self._runs.running((key, Purpose.MEASURE))
        if measuring is not None:
            return Activity.MEASURING, measuring.cause
        checking = self._runs.running((key, Purpose.CHECK))
        if checking is not None:
            return Activity.CHECKING, checking.cause
        check, measure = (key, Purpose.CHECK), (key, Purpose.MEASURE)
        waiting = self._lookups.running(check) or self._lookups.pending(check)
        waiting = waiting or self._runs.pending(check) or self._runs.pending(measure)
        return (Activity.IDLE, None) if waiting is None else (Activity.WAITING, waiting.cause)
