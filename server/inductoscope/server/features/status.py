"""The state of everything, for a client that shows it: see `inductoscope/status` in `docs/lsp-extensions.md`."""

from __future__ import annotations

from typing import Any

from inductoscope.protocol.report import Status
from inductoscope.server import words
from inductoscope.server.features import lens
from inductoscope.server.settings import Trust
from inductoscope.server.snapshot import Activity, Snapshot, TargetView

_STATES = {
    Activity.WAITING: "waiting",
    Activity.CHECKING: "checking",
    Activity.MEASURING: "measuring",
}
_STATUS_STATES = {Status.FAILED: "failed", Status.NO_INPUTS: "no-inputs", Status.NOT_RUN: "not-run"}


def status(snapshot: Snapshot) -> dict[str, Any]:
    """The notification's parameters."""
    environment = snapshot.environment
    views = list(snapshot.targets.values())
    return {
        "health": _health(snapshot),
        "quiescent": all(view.activity is Activity.IDLE for view in views),
        "message": _message(snapshot),
        "torch": environment.torch,
        "triton": environment.triton,
        "python": environment.python,
        "interpreter": environment.interpreter,
        "device": next((view.settled.report.device for view in views if view.settled), None),
        "trusted": snapshot.trust is Trust.TRUSTED,
        "targets": [_target(snapshot, view) for view in views],
    }


def _health(snapshot: Snapshot) -> str:
    if snapshot.environment.problem:
        return "error"
    return "warning" if snapshot.environment.warning or snapshot.trust is Trust.UNTRUSTED else "ok"


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


def _target(snapshot: Snapshot, view: TargetView) -> dict[str, Any]:
    path, settled = view.target.file, view.settled
    document = snapshot.documents.get(path)
    return {
        "uri": document.uri if document else None,
        "name": view.target.name,
        "line": snapshot.line_of(view) or view.target.line,
        "state": _state(view),
        "summary": lens.summary(snapshot, view),
        "stale": settled is not None and snapshot.is_stale(settled),
    }


def _state(view: TargetView) -> str:
    if view.activity is not Activity.IDLE:
        return _STATES[view.activity]
    if view.settled is None:
        return "no-inputs" if view.scanned.inputs is None else "not-run"
    return _STATUS_STATES.get(view.settled.report.status, "checked")
