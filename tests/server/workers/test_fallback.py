"""Under `auto`, a program that the simulated GPU cannot run is run for the CPU, and a note says so."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from inductoscope.protocol.messages import Errand, Failure, FailureKind, Target, TargetKind
from inductoscope.protocol.report import Finding, Rung, Severity, Status, TargetReport
from inductoscope.server.workers import fallback
from inductoscope.server.workers.run import RunOutcome, RunRequest

REQUEST = RunRequest(Target("m.py", "Model.forward", 3, TargetKind.FUNCTION, "Model"), "auto", Rung.LOWER)
BELOW = Failure(FailureKind.RUN, "Model.forward raises RuntimeError: no storage.", simulation=True)


def report(device: str, status: Status = Status.COMPILED) -> TargetReport:
    return TargetReport("m.py", "Model.forward", 3, device, Rung.LOWER, status, notes=("as before",))


def failed(device: str, failure: Failure | None) -> RunOutcome:
    return RunOutcome(report(device, Status.FAILED), failure, None)


def come_to(request: RunRequest, **by_device: RunOutcome) -> tuple[RunOutcome, list[str]]:
    """What the request comes to, and the devices that were asked for."""
    asked: list[str] = []

    async def once(wanted: RunRequest, _: object) -> RunOutcome:
        asked.append(wanted.device)
        return by_device[wanted.device.partition(":")[0]]

    return asyncio.run(fallback.run(once, request, lambda _: None)), asked


FINE = RunOutcome(report("cpu"), None, None)


@pytest.mark.parametrize("failure", [BELOW, Failure(FailureKind.CRASH, "The worker ended by SIGSEGV.")])
def test_a_failure_of_the_simulation_leads_to_the_cpu(failure: Failure) -> None:
    outcome, asked = come_to(REQUEST, auto=failed("sim:H200", failure), cpu=FINE)
    assert asked == ["auto", "cpu"]
    assert (outcome.report.device, outcome.report.status) == ("cpu", Status.COMPILED)
    note, kept = outcome.report.notes
    assert "sim:H200" in note and failure.message.rstrip(".") in note
    assert kept == "as before"


def test_tensors_on_two_devices_lead_to_the_cpu() -> None:
    finding = Finding("compile-error", Severity.ERROR, "m.py", 4, 0, 4, 9, "found two devices", Rung.CAPTURE)
    mixed = replace(report("sim:H200", Status.FAILED), message="found two devices", findings=(finding,))
    outcome, _ = come_to(REQUEST, auto=RunOutcome(mixed, None, None), cpu=FINE)
    assert outcome.report.device == "cpu"
    assert "found two devices" in outcome.report.notes[0]


def test_a_program_that_fails_on_both_has_failed_as_it_did_first() -> None:
    first = failed("sim:H200", BELOW)
    outcome, asked = come_to(REQUEST, auto=first, cpu=failed("cpu", Failure(FailureKind.RUN, "again")))
    assert asked == ["auto", "cpu"]
    assert outcome is first


@pytest.mark.parametrize(
    ("request_", "first"),
    [
        (replace(REQUEST, device="sim:H200"), failed("sim:H200", BELOW)),
        (REQUEST, failed("cpu", BELOW)),
        (REQUEST, failed("sim:H200", replace(BELOW, simulation=False))),
        (REQUEST, failed("sim:H200", None)),
        (REQUEST, RunOutcome(report("sim:H200"), None, None)),
        (replace(REQUEST, rung=Rung.MEASURE), failed("sim:H200", BELOW)),
        (replace(REQUEST, errand=Errand.DECISIONS), failed("sim:H200", BELOW)),
    ],
    ids=["asked for", "was the CPU", "its own error", "a break", "no failure", "measured", "an errand"],
)
def test_nothing_else_is_run_twice(request_: RunRequest, first: RunOutcome) -> None:
    outcome, asked = come_to(request_, **{request_.device.partition(":")[0]: first})
    assert outcome is first
    assert len(asked) == 1
