"""What a run does to a target's view: pure functions of the view, the run and what the worker said.

A run that fails never removes what still holds: its findings stand beside those of the last good run.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from inductoscope.protocol.messages import FindingFound, Message, Progress, RungDone, Target
from inductoscope.protocol.report import Rung, Status, TargetReport
from inductoscope.server import freshness
from inductoscope.server.meaning import Meaning
from inductoscope.server.positions import Text
from inductoscope.server.snapshot import Environment, Measurement, Result, TargetView
from inductoscope.server.workers.run import RunOutcome, RunRequest


class Purpose(enum.Enum):
    """Why a target is run."""

    CHECK = "check"
    MEASURE = "measure"

    @property
    def title(self) -> str:
        """What is going on, for people."""
        return "Checking" if self is Purpose.CHECK else "Measuring"


@dataclass(frozen=True)
class Plan:
    """One run: what is asked of the worker, and which texts its answer will be about.

    `texts` are those of the program's files that are open, `closure` what all of them mean, both by path.
    """

    request: RunRequest
    purpose: Purpose
    generation: int
    version: int
    texts: Mapping[str, Text]
    closure: Mapping[str, Meaning]
    fingerprint: str
    cause: str

    def result(self, report: TargetReport, now: float) -> Result:
        """The answer to this run, or to an earlier one like it."""
        at = now - report.cached.age_s if report.cached is not None else now
        files = frozenset(self.closure)
        return Result(report, self.generation, self.version, self.texts, at, self.fingerprint, self.cause, files)


def heard(view: TargetView, plan: Plan, message: Message, now: float) -> TargetView:
    """After a message that is not the last of its run."""
    if isinstance(message, Progress):
        return replace(view, doing=message.text)
    if plan.purpose is not Purpose.CHECK:
        return view
    if isinstance(message, RungDone):
        return replace(view, current=plan.result(message.report, now))
    if isinstance(message, FindingFound):
        report = view.current.report if view.current else _nothing_yet(plan.request)
        if message.finding in report.findings:
            return view
        report = replace(report, findings=(*report.findings, message.finding))
        return replace(view, current=plan.result(report, now))
    return view


def finished(view: TargetView, plan: Plan, outcome: RunOutcome, now: float) -> TargetView:
    """After a run has ended by itself, well or not."""
    result = plan.result(outcome.report, now)
    if plan.purpose is Purpose.MEASURE:
        return replace(view, measured=Measurement(result, outcome.failure))
    if outcome.failure is not None or outcome.report.status is Status.FAILED:
        return replace(view, failed=result, failure=outcome.failure, retry="")
    return replace(view, good=result, before=view.good, failed=None, failure=None, retry="", rests_until=0.0)


def to_retry(view: TargetView) -> TargetView:
    """After its file was saved: somebody wants to see whether what failed works now, changed or not."""
    return view if view.failed is None else replace(view, retry=view.failed.fingerprint)


def undone(view: TargetView, fingerprint: str) -> TargetView | None:
    """With the last good answer about the program named in its place again; None where there is none."""
    if view.good is not None and view.good.fingerprint == fingerprint:
        return replace(view, failed=None, failure=None, retry="", rests_until=0.0)
    if view.before is not None and view.before.fingerprint == fingerprint:
        return replace(view, good=view.before, before=view.good, failed=None, failure=None, retry="", rests_until=0.0)
    return None


def relaid(view: TargetView, fingerprint: str, now: Callable[[str], Text | None]) -> TargetView:
    """With the answers about the program named told with the lines that it has `now`."""
    results = {name: result for name in ("good", "failed") if (result := getattr(view, name)) is not None}
    held = {name: result for name, result in results.items() if result.fingerprint == fingerprint}
    after = {name: freshness.relaid(result, freshness.texts_of(result, now)) for name, result in held.items()}
    return replace(view, good=after.get("good", view.good), failed=after.get("failed", view.failed))


def over(view: TargetView) -> TargetView:
    """After a run is over in whatever way, cancelled too: what it had found so far is dropped or in its result."""
    return replace(view, current=None, doing=None)


def learned(before: Environment, outcome: RunOutcome) -> Environment:
    """What is known of the interpreter after a run."""
    hello, failure = outcome.hello, outcome.failure
    if hello is not None:
        return Environment(hello.executable, hello.python, hello.torch, hello.triton, hello.problem, hello.warning)
    return before if failure is None else replace(before, problem=failure.message)


def _nothing_yet(request: RunRequest) -> TargetReport:
    target: Target = request.target
    return TargetReport(target.file, target.name, target.line, request.device, Rung.SCAN, Status.NOT_RUN)
