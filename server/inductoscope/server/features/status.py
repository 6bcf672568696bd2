"""The state of everything, for a client that shows it: see `inductoscope/status` in `docs/lsp-extensions.md`."""

from __future__ import annotations

from inductoscope.protocol.report import Status as RunStatus
from inductoscope.server import words
from inductoscope.server.documents import uri_of
from inductoscope.server.extensions import Health, Status, TargetState, TargetStatus
from inductoscope.server.features import lens
from inductoscope.server.settings import Trust
from inductoscope.server.snapshot import Activity, Snapshot, TargetView

_STATES = {
    Activity.WAITING: TargetState.WAITING,
    Activity.CHECKING: TargetState.CHECKING,
    Activity.MEASURING: TargetState.MEASURING,
}
_ENDED = {
    RunStatus.FAILED: TargetState.FAILED,
    RunStatus.NO_INPUTS: TargetState.NO_INPUTS,
    RunStatus.NOT_RUN: TargetState.NOT_RUN,
}


def status(snapshot: Snapshot) -> Status:
    """The notification's parameters."""
    environment = snapshot.environment
    views = list(snapshot.targets.values())
    return Status(
        health=_health(snapshot),
        quiescent=all(view.activity is Activity.IDLE for view in views),
        message=_message(snapshot),
        torch=environment.torch,
        triton=environment.triton,
        python=environment.python,
        interpreter=environment.interpreter,
        device=next((view.settled.report.device for view in views if view.settled), None),
        trusted=snapshot.trust is Trust.TRUSTED,
        targets=tuple(_target(snapshot, view) for view in views),
    )


def state(view: TargetView) -> TargetState:
    """What is going on with a target."""
    if view.activity is not Activity.IDLE:
        return _STATES[view.activity]
    if view.settled is None:
        return TargetState.NO_INPUTS if view.scanned.inputs is None else TargetState.NOT_RUN
    return _ENDED.get(view.settled.report.status, TargetState.CHECKED)


def _health(snapshot: Snapshot) -> Health:
    if snapshot.environment.problem:
        return Health.ERROR
    return Health.WARNING if snapshot.environment.warning or snapshot.trust is Trust.UNTRUSTED else Health.OK


def _message(snapshot: Snapshot) -> str:
    environment = snapshot.environment
    if snapshot.trust is Trust.UNTRUSTED:
        return "This workspace is not trusted: files are read, and no code is run."
    if environment.problem or environment.warning:
        return environment.problem or environment.warning or ""
    if environment.torch is None:
        return "No worker has been started yet."
    devices = {view.settled.report.device for view in snapshot.targets.values() if view.settled}
    return ", ".join([f"torch {environment.torch}", *map(words.device, sorted(devices))])


def _target(snapshot: Snapshot, view: TargetView) -> TargetStatus:
    path, settled = view.target.file, view.settled
    document = snapshot.documents.get(path)
    return TargetStatus(
        uri=document.uri if document else uri_of(path),
        name=view.target.name,
        line=snapshot.line_of(view) or view.target.line,
        state=state(view),
        summary=lens.summary(snapshot, view),
        stale=settled is not None and snapshot.is_stale(settled),
    )
