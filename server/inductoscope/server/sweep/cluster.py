"""Points of a sweep as tasks of Ray: the only module that knows Ray.

Ray places them by what they need, retries those whose node or worker was lost, and tells which are done.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inductoscope.protocol import codec, messages
from inductoscope.protocol.bench import BenchOptions
from inductoscope.protocol.messages import Hello, Message, RunDone, RunFailed
from inductoscope.protocol.report import TargetReport
from inductoscope.server.planning import CheckError
from inductoscope.server.remote import closure
from inductoscope.server.sweep import task
from inductoscope.server.sweep.points import Point
from inductoscope.server.workers.command import bootstrap_path, namespace_parts

LOCAL = "local"
RETRIES = 2
_MISSING = "Sweeps run on Ray, which is not installed: pip install 'inductoscope[ray]'."


@dataclass(frozen=True)
class Settings:
    """Which cluster (`local` starts one on this machine), and how each point is measured there.

    `python` is the interpreter that has torch, None for that of the node's Ray.
    """

    address: str
    bench: BenchOptions
    seconds: float
    timeout_s: float
    python: str | None = None


@dataclass(frozen=True)
class Done:
    """A point with its report, or the sentence that says why there is none."""

    point: Point
    report: TargetReport | None
    torch: str | None = None
    problem: str | None = None


def run(points: Sequence[Point], settings: Settings) -> Iterator[Done]:
    """Measure all points, each told as soon as it is done.  Raises `CheckError` where Ray cannot be used."""
    ray = _ray()
    _connect(ray, settings.address)
    try:
        ray.cloudpickle.register_pickle_by_value(task)
        yield from _results(ray, points, settings)
    finally:
        ray.cloudpickle.unregister_pickle_by_value(task)
        ray.shutdown()


def _results(ray: Any, points: Sequence[Point], settings: Settings) -> Iterator[Done]:
    ours = ray.put(dict(_contents(closure.own_files())))
    waiting = {_submitted(ray, point, ours, settings): point for point in points}
    while waiting:
        (first, *_), _ = ray.wait(list(waiting), num_returns=1)
        point = waiting.pop(first)
        try:
            yield _done(point, json.loads(ray.get(first)))
        except Exception as error:  # Ray's own errors, and what a task raised after its last try
            yield Done(point, None, problem=f"{point.text}: {_reason(error)}")


def _submitted(ray: Any, point: Point, ours: Any, settings: Settings) -> Any:
    needs: dict[str, Any] = {"num_cpus": 1, "num_gpus": point.where.gpus}
    if point.where.accelerator is not None:
        needs["accelerator_type"] = point.where.accelerator
    roots = (str(Path.cwd()), *point.job.settings.paths)
    theirs = dict(_contents(closure.of_target(point.target.file, roots)))
    request = json.dumps(messages.to_wire(point.request(settings.bench, settings.seconds)))
    remote = ray.remote(max_retries=RETRIES, retry_exceptions=[task.WorkerLostError], **needs)(task.run)
    return remote.remote(ours, theirs, worker_of(settings), request)


def worker_of(settings: Settings) -> str:
    """How a task starts its worker, see `task.run`."""
    worker = {
        "bootstrap": str(bootstrap_path()),
        "parts": namespace_parts(),
        "python": settings.python,
        "timeout_s": settings.timeout_s,
        "cwd": str(Path.cwd()),
    }
    return json.dumps(worker)


def _contents(files: Any) -> Iterator[tuple[str, bytes]]:
    found = closure.parcel(files)
    return ((path, found.contents[key]) for path, key in found.paths.items())


def _done(point: Point, said: Sequence[Any]) -> Done:
    hello, last = (_message(value) for value in said)
    torch = hello.torch if isinstance(hello, Hello) else None
    match last:
        case RunDone():
            return Done(point, last.report, torch)
        case RunFailed():
            return Done(point, last.report, torch, f"{point.text}: {last.failure.message}")
        case Hello():
            return Done(point, None, torch, f"{point.text}: {last.problem}")
    return Done(point, None, torch, f"{point.text}: the worker said nothing that can be understood.")


def _message(value: Any) -> Message | None:
    try:
        return messages.from_wire(value)
    except codec.CodecError:
        return None


def _reason(error: BaseException) -> str:
    cause = getattr(error, "cause", None) or error
    return f"{type(cause).__name__}: {next(iter(str(cause).strip().splitlines()), '')}"


def _connect(ray: Any, address: str) -> None:
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR", "include_dashboard": False}
    try:
        if address == LOCAL:
            ray.init(address=LOCAL, num_cpus=1, **options)  # one at a time: measurements disturb each other
        else:
            ray.init(address=address, log_to_driver=False, logging_level="ERROR")
    except Exception as error:
        raise CheckError(f"The Ray cluster {address} cannot be used: {_reason(error)}.") from error


def _ray() -> Any:
    try:
        import ray
        import ray.cloudpickle
    except ImportError:
        raise CheckError(_MISSING) from None
    return ray
