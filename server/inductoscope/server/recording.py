"""`inductoscope devices --record` without its output: the card of this machine, and what torch decides on it.

Everything is read in worker processes of the user's interpreter.  What cannot be recorded is a sentence in
`Recorded.problems`; without the card itself there is nothing, which is a `CheckError`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from inductoscope.protocol import own_devices
from inductoscope.protocol.messages import Errand, Target, TargetKind
from inductoscope.protocol.own_devices import OwnDevice
from inductoscope.protocol.recording import Recording
from inductoscope.protocol.report import Rung
from inductoscope.server import config, planning
from inductoscope.server.check import Runs, Watcher
from inductoscope.server.planning import CheckError, Job, Options
from inductoscope.server.targets import Scan, ScannedTarget
from inductoscope.server.workers import Spare, WorkerCommand

DEVICE = "cuda"


@dataclass(frozen=True)
class Recorded:
    """The card with its recording, and a sentence for each thing that could not be recorded."""

    own: OwnDevice
    problems: tuple[str, ...]


async def record(options: Options, watcher: Watcher | None = None, command: WorkerCommand | None = None) -> Recorded:
    """Read the card, then record each target that `options` names, one after the other so that times are true.

    `command` replaces the command line of the workers.  Raises `CheckError` where the card cannot be read.
    """
    options = replace(options, device=DEVICE, rung=Rung.MEASURE)
    plan = planning.plan(options)
    runs = Runs(options, watcher or Watcher(), command, 1, Spare.NONE)
    problems = list(plan.problems)
    decided: list[Recording] = []
    try:
        own = await _card(runs, plan.jobs)
        for job in plan.jobs:
            found = await _decisions(runs, job)
            if isinstance(found, Recording):
                decided.append(found)
            else:
                problems.append(found)
    finally:
        await runs.close()
    assert own.recording is not None  # what a worker reads always says with which torch
    merged, unfit = merge(own.recording, decided)
    return Recorded(OwnDevice(own.device, merged), (*problems, *unfit))


def merge(card: Recording, decided: Sequence[Recording]) -> tuple[Recording, tuple[str, ...]]:
    """One recording of them all, each decision once; and why some are left out."""
    fitting = [one for one in decided if one.torch == card.torch]
    others = sorted({one.torch for one in decided} - {card.torch})
    paddings = {(one.key, one.sizes): one for recording in fitting for one in recording.paddings}
    choices = {(one.operator, one.inputs): one for recording in fitting for one in recording.choices}
    kernels = {one.text: one for recording in fitting for one in recording.kernels}
    merged = replace(
        card, paddings=tuple(paddings.values()), choices=tuple(choices.values()), kernels=tuple(kernels.values())
    )
    why = (
        f"What torch {version} decided is left out: a recording holds the decisions of one version, here {card.torch}."
        for version in others
    )
    return merged, tuple(why)


def called(own: OwnDevice, file: Path | None) -> OwnDevice:
    """The device under the name of the file that it goes into, where that can be a name of its own."""
    if file is None or not own_devices.is_free(file.stem):
        return own
    return replace(own, device=replace(own.device, key=file.stem))


async def _card(runs: Runs, jobs: Sequence[Job]) -> OwnDevice:
    """The figures, read by the interpreter of the first target or that of this folder."""
    job = jobs[0] if jobs else _here()
    target = replace(job.target, name="the GPU")
    request = replace(runs.request(job), target=target, errand=Errand.FIGURES, memories=None)
    outcome = await runs.run(job, request)
    if outcome.card is None:
        raise CheckError(outcome.failure.message if outcome.failure else "The worker told nothing of the GPU.")
    return outcome.card


async def _decisions(runs: Runs, job: Job) -> Recording | str:
    """What torch decided for a target, or why that is not known."""
    request = replace(runs.request(job), errand=Errand.DECISIONS, memories=None)
    if job.scanned.inputs is None:
        outcome = await runs.one(job)
        return outcome.report.message or f"{job.target.name} has no inputs."
    outcome = await runs.run(job, request)
    if outcome.decisions is not None:
        return outcome.decisions
    if outcome.failure is not None:
        return outcome.failure.message
    return f"The worker told nothing of {job.target.name}."


def _here() -> Job:
    """A job for the folder that the command is in, which runs no program."""
    target = Target(str(Path.cwd() / "-"), "the GPU", 1, TargetKind.OBJECT, "")
    try:
        settings = config.nearest(Path.cwd())
    except config.ConfigError as error:
        raise CheckError(str(error)) from None
    return Job(ScannedTarget(target, None), Scan((), ()), settings)
