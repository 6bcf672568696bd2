"""What `auto` does about a program that the simulated GPU cannot run: it is run for the CPU, and a note says so.

Knows how runs end; nothing of processes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

from inductoscope.protocol.devices import DeviceKind
from inductoscope.protocol.messages import Errand, FailureKind
from inductoscope.protocol.report import Rung, Status
from inductoscope.server.workers.run import OnEvent, RunOutcome, RunRequest

Run = Callable[[RunRequest, OnEvent], Awaitable[RunOutcome]]


async def run(once: Run, request: RunRequest, on_event: OnEvent) -> RunOutcome:
    """What `request` comes to by `once`, on the CPU where `auto` chose a simulated GPU that was at fault.

    A program that fails on both has failed as it did first.
    """
    outcome = await once(request, on_event)
    chose = request.device == DeviceKind.AUTO.value and outcome.report.device.startswith("sim:")
    looks = request.rung is not Rung.MEASURE and request.errand is Errand.REPORT
    if not (chose and looks and _may_be_the_simulations(outcome)):
        return outcome
    on_cpu = await once(replace(request, device=DeviceKind.CPU.value), on_event)
    if on_cpu.report.status is Status.FAILED:
        return outcome
    notes = (_note(outcome), *on_cpu.report.notes)
    return replace(on_cpu, report=replace(on_cpu.report, notes=notes))


def _may_be_the_simulations(outcome: RunOutcome) -> bool:
    failure = outcome.failure
    if failure is not None:
        return failure.simulation or failure.kind is FailureKind.CRASH
    failed = outcome.report.status is Status.FAILED  # such as for tensors on two devices
    return failed and any(finding.code == "compile-error" for finding in outcome.report.findings)


def _note(outcome: RunOutcome) -> str:
    said = (outcome.failure.message if outcome.failure is not None else outcome.report.message or "").rstrip(".")
    return (
        f"Shown is the CPU, since the program does not run on a simulated GPU ({outcome.report.device}): {said}. "
        'With the device set to "cpu" that is not tried.'
    )
