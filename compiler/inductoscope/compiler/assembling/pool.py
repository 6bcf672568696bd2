"""Jobs in forked processes: several at a time, and one that crashes or hangs costs nobody but itself.

Forked, because what the work needs (torch, Triton, a patched driver) takes seconds to import and is there already.
Knows nothing of what the jobs are about.
"""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import os
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing import connection
from typing import Any, Generic, TypeVar

J = TypeVar("J")
R = TypeVar("R")

_GRACE_S = 1.0
"""How long a process that is told to end may take to end what it has started."""


@dataclass(frozen=True)
class Lost:
    """A job without a result; `why` is the rest of a sentence that begins with what was being done."""

    why: str


@dataclass(frozen=True)
class Done(Generic[R]):
    """What became of the job at `index`."""

    index: int
    result: R | Lost


def run(jobs: Sequence[J], work: Callable[[J], R], processes: int, timeout_s: float) -> Iterator[Done[R]]:
    """Do `work` on each job, begun in order, and tell of each as it ends.

    Results have to be picklable.  `work` must not raise: a job whose process ends early is lost, and so is one that
    takes longer than `timeout_s`.  Where a process cannot be forked, the jobs are done here, one after the other and
    without that protection.
    """
    if not hasattr(os, "fork") or sys.platform == "darwin":  # frameworks of macOS do not survive a fork
        for index, job in enumerate(jobs):
            yield Done(index, work(job))
        return
    pool: _Pool[J, R] = _Pool(jobs, work, timeout_s)
    try:
        yield from pool.run(min(processes, len(jobs)))
    finally:
        pool.close()


class _Pool(Generic[J, R]):
    def __init__(self, jobs: Sequence[J], work: Callable[[J], R], timeout_s: float) -> None:
        self._jobs, self._work, self._timeout_s = jobs, work, timeout_s
        self._waiting = iter(range(len(jobs)))
        self._busy: dict[Any, _Worker] = {}

    def run(self, processes: int) -> Iterator[Done[R]]:
        for _ in range(processes):
            self._give(self._fork())
        while self._busy:
            soonest = min(worker.deadline for worker in self._busy.values())
            ready = connection.wait(list(self._busy), max(0.0, soonest - time.monotonic()))
            for channel in ready:
                yield self._heard(self._busy.pop(channel))
            for worker in [worker for worker in self._busy.values() if worker.deadline <= time.monotonic()]:
                del self._busy[worker.channel]
                worker.end()
                yield self._lost(worker, f"took longer than {self._timeout_s:.0f} s and was stopped")

    def close(self) -> None:
        for worker in self._busy.values():
            worker.end()
        self._busy.clear()

    def _heard(self, worker: _Worker) -> Done[R]:
        try:
            result: R = worker.channel.recv()
        except (EOFError, OSError):
            return self._lost(worker, f"ended its process {_how(worker.wait())}")
        index = worker.index
        self._give(worker)
        return Done(index, result)

    def _lost(self, worker: _Worker, why: str) -> Done[R]:
        self._give(None)
        return Done(worker.index, Lost(why))

    def _give(self, worker: _Worker | None) -> None:
        """The next job for a worker, or for a new one in place of one that was lost; the last ends the worker."""
        index = next(self._waiting, None)
        if index is None:
            if worker is not None:
                worker.end()
            return
        worker = worker or self._fork()
        worker.index, worker.deadline = index, time.monotonic() + self._timeout_s
        with contextlib.suppress(OSError):  # it has died, which is seen when its answer is waited for
            worker.channel.send(index)
        self._busy[worker.channel] = worker

    def _fork(self) -> _Worker:
        ours, theirs = multiprocessing.Pipe()
        others = [ours, *self._busy]
        context = multiprocessing.get_context("fork")
        process = context.Process(target=_serve, args=(theirs, others, self._jobs, self._work), daemon=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # about threads, of which the child needs none
            process.start()
        theirs.close()
        return _Worker(process, ours)


class _Worker:
    """A process, and the job it was given last with the time by which it has to be done."""

    def __init__(self, process: Any, channel: Any) -> None:
        self._process, self.channel = process, channel
        self.index, self.deadline = -1, 0.0

    def wait(self) -> int | None:
        self._process.join(_GRACE_S)
        status: int | None = self._process.exitcode
        self.end()
        return status

    def end(self) -> None:
        """End the process with whatever program it waits for."""
        self.channel.close()
        if self._process.is_alive():
            self._process.terminate()
            self._process.join(_GRACE_S)
        if self._process.is_alive():
            self._process.kill()
        self._process.join()


def _serve(channel: Any, others: list[Any], jobs: Sequence[J], work: Callable[[J], R]) -> None:
    for other in others:  # as long as they are open here, no sibling sees that the parent is gone
        other.close()
    signal.signal(signal.SIGTERM, _end_with_its_program)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    gc.freeze()  # a collection would copy the parent's pages
    with contextlib.suppress(EOFError, OSError):
        while True:
            channel.send(work(jobs[channel.recv()]))


def _end_with_its_program(*_: object) -> None:
    """An exception makes `subprocess.run` end the program that it waits for."""
    raise SystemExit(1)


def _how(status: int | None) -> str:
    """How a process ended: `by SIGSEGV`, `with status 3`."""
    if status is None:
        return "in an unknown way"
    if status < 0:
        with contextlib.suppress(ValueError):
            return f"by {signal.Signals(-status).name}"
    return f"with status {abs(status)}"
