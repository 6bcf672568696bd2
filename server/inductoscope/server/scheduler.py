"""Which job goes next: at most one running and one pending for a key, and a bounded number at once.

A newer request for a key replaces the pending one and cancels the running one, whose answer would be about an older
text.  Each job has a cause, for the log.  Knows nothing of what a job does.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Callable, Coroutine, Hashable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

logger = logging.getLogger("inductoscope.scheduler")

K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True)
class Job(Generic[K]):
    """Something to do for `key`; `generation` grows with every job of a scheduler."""

    key: K
    cause: str
    generation: int


class Scheduler(Generic[K]):
    """Starts jobs in the order of their requests while fewer than `limit` run.

    `work` does a job; `on_change` is called after a key got, started, ended or lost one.  Schedulers that share
    `generations` never give two jobs the same one.
    """

    def __init__(
        self,
        work: Callable[[Job[K]], Coroutine[Any, Any, None]],
        on_change: Callable[[K], None],
        *,
        limit: int = 1,
        generations: Iterator[int] | None = None,
    ) -> None:
        self._work = work
        self._on_change = on_change
        self._limit = limit
        self._generations = itertools.count(1) if generations is None else generations
        self._pending: dict[K, Job[K]] = {}
        self._running: dict[K, tuple[Job[K], asyncio.Task[None]]] = {}
        self._tasks: dict[asyncio.Task[None], Job[K]] = {}  # the running ones, and cancelled ones that have not ended
        self._closed = False

    def request(self, key: K, cause: str) -> None:
        """Ask for work; an older job of that key is dropped or cancelled."""
        self._pending.pop(key, None)
        self._pending[key] = job = Job(key, cause, next(self._generations))
        logger.info("requested key=%s generation=%d cause=%s", key, job.generation, cause)
        self._stop(key, "a newer request")
        self._on_change(key)
        self._fill()

    def cancel(self, key: K, cause: str) -> None:
        """Drop what is pending for `key` and cancel what is running."""
        dropped = self._pending.pop(key, None)
        stopped = self._stop(key, cause)
        if dropped or stopped:
            self._on_change(key)

    def running(self, key: K) -> Job[K] | None:
        """The job of that key that runs now."""
        entry = self._running.get(key)
        return entry[0] if entry else None

    def pending(self, key: K) -> Job[K] | None:
        """The job of that key that waits."""
        return self._pending.get(key)

    @property
    def keys(self) -> tuple[K, ...]:
        """Every key that has a job, if only one that was cancelled and has not ended yet."""
        return tuple({job.key: None for job in (*self._tasks.values(), *self._pending.values())})

    async def close(self) -> None:
        """Cancel everything, start nothing more, and wait for the ends."""
        self._closed = True
        for key in self.keys:
            self.cancel(key, "closing")
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _stop(self, key: K, cause: str) -> bool:
        entry = self._running.pop(key, None)
        if entry is None:
            return False
        job, task = entry
        logger.info("cancelled key=%s generation=%d cause=%s", key, job.generation, cause)
        task.cancel()
        return True

    def _fill(self) -> None:
        # A cancelled job keeps its slot until it has ended: its process still takes the machine.
        while self._pending and not self._closed and len(self._tasks) < self._limit:
            key = next(iter(self._pending))
            job = self._pending.pop(key)
            task = asyncio.create_task(self._work(job))
            self._running[key] = (job, task)
            self._tasks[task] = job
            task.add_done_callback(lambda task, job=job: self._ended(job, task))  # type: ignore[misc]
            self._on_change(key)

    def _ended(self, job: Job[K], task: asyncio.Task[None]) -> None:
        del self._tasks[task]
        entry = self._running.get(job.key)
        if entry is not None and entry[1] is task:
            del self._running[job.key]
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("job failed key=%s cause=%s", job.key, job.cause, exc_info=error)
        self._on_change(job.key)
        self._fill()
