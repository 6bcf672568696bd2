"""The pool: how many workers run at once, and what is ready before a run is asked for: a warm process, or a spare.

A worker process serves one run and is then ended, whatever came of it: user code leaves traces in a process.
"""

from __future__ import annotations

import asyncio
import enum
import logging
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any

from inductoscope.protocol.messages import Failure, Hello
from inductoscope.server.workers import failures, fallback
from inductoscope.server.workers.command import WorkerCommand, bootstrap_command
from inductoscope.server.workers.nursery import Growth, Nursery, suits
from inductoscope.server.workers.process import WorkerProcess, start
from inductoscope.server.workers.run import (
    START_TIMEOUT_S,
    OnEvent,
    RunOutcome,
    RunRequest,
    converse,
    greet,
    unfinished,
)

logger = logging.getLogger("inductoscope.pool")

START_ALLOWANCE_S = 30.0
"""What a run's time limit is exceeded by while its worker starts: importing torch is not the program's doing."""


class Spare(enum.Enum):
    """What the pool has ready for the next run.

    With `FORK`, warm processes where runs can be forked from one, else a worker that was started ahead; with `SERIES`
    the same, of which no more is made than what is worth it for runs that are known to follow.
    """

    KEEP = "keep"
    NONE = "none"
    FORK = "fork"
    SERIES = "series"


@dataclass(frozen=True)
class _Started:
    """A worker and the task that waits for its hello; `forked` is one from a warm process."""

    worker: WorkerProcess
    hello: asyncio.Task[Hello | Failure]
    cwd: str | None
    forked: bool = False

    def serves(self, cwd: str | None) -> bool:
        return self.cwd == cwd and self.worker.alive


async def _within(limit: float, started: _Started) -> Hello | Failure:
    try:
        return await asyncio.wait_for(asyncio.shield(started.hello), limit)
    except asyncio.TimeoutError:
        return failures.silent_start(limit, started.worker.tail)


class WorkerPool:
    """Runs requests in fresh workers of one interpreter, at most `max_running` at a time.

    `env` is the environment of the workers, by default the server's own; `command` replaces the command line.  `more`
    says whether another run is about to follow: its worker then starts while the one before is still at work.
    """

    def __init__(
        self,
        interpreter: str,
        *,
        max_running: int = 1,
        spare: Spare = Spare.KEEP,
        env: Mapping[str, str] | None = None,
        command: WorkerCommand | None = None,
        more: Callable[[], bool] = lambda: False,
    ) -> None:
        self.interpreter = interpreter
        self._command = command or bootstrap_command(interpreter)
        self._env = env
        self._policy = spare
        self._more = more
        self._slots = asyncio.Semaphore(max_running)
        self._spare: _Started | None = None
        self._spare_lock = asyncio.Lock()
        self._background: set[asyncio.Task[None]] = set()
        self._closed = False
        forks = spare in (Spare.FORK, Spare.SERIES)
        self._nursery = Nursery(self._command, env) if forks else None

    async def run(self, request: RunRequest, on_event: OnEvent) -> RunOutcome:
        """Do `request`.  Never raises for anything a worker does; cancelling kills the worker and all it started."""
        return await fallback.run(self._once, request, on_event)

    async def _once(self, request: RunRequest, on_event: OnEvent) -> RunOutcome:
        async with self._slots:
            if self._closed:
                return unfinished(request, failures.pool_closed())
            limit = min(START_TIMEOUT_S, request.timeout_s + START_ALLOWANCE_S)
            try:
                started = await asyncio.wait_for(self._get(request), limit)
                if isinstance(started, _Started) and started.forked and await self._dies_at_start(started, limit):
                    started = await self._take(request.cwd)
            except asyncio.TimeoutError:
                return unfinished(request, failures.silent_start(limit, ()))
            except OSError as error:
                return unfinished(request, failures.no_interpreter(self.interpreter, error))
            if not isinstance(started, _Started):
                return started
            try:
                hello = await _within(limit, started)
                if isinstance(hello, Failure):
                    return unfinished(request, hello)
                if self._more() and not started.forked:
                    self._go(self._renew(request.cwd))
                return await converse(started.worker, hello, request, on_event)
            finally:
                await self._end(started)
                if self._keeps_spare and not started.forked and not self._closed:
                    self._go(self._renew(request.cwd))

    async def prepare(self, cwd: str | None = None) -> Hello | Failure:
        """Have ready what the policy says, for `cwd`; returns what it said, or why none can be started."""
        try:
            hello = await self._nursery.prepare() if self._nursery is not None else None
            if hello is not None:
                return hello
            await self._renew(cwd)
        except OSError as error:
            return failures.no_interpreter(self.interpreter, error)
        spare = self._spare
        return await asyncio.shield(spare.hello) if spare is not None else failures.pool_closed()

    async def close(self) -> None:
        """End the spare and refuse further runs; a run in progress is its caller's task to cancel."""
        self._closed = True
        async with self._spare_lock:
            await self._drop_spare()
        if self._nursery is not None:
            await self._nursery.close()
        await asyncio.gather(*self._background, return_exceptions=True)

    @property
    def _keeps_spare(self) -> bool:
        return self._policy in (Spare.KEEP, Spare.FORK)

    async def _get(self, request: RunRequest) -> _Started | RunOutcome:
        """A worker for the request, or what the run comes to without one.  Raises `OSError`."""
        if self._nursery is None or not suits(request):
            return await self._take(request.cwd)
        grows = self._policy is Spare.FORK or self._more()
        forked = await self._nursery.fork(request, Growth.ALWAYS if grows else Growth.NONE)
        if forked is None:
            return await self._take(request.cwd)
        if isinstance(forked, WorkerProcess):
            return _Started(forked, asyncio.create_task(greet(forked)), request.cwd, forked=True)
        if isinstance(forked, Failure):
            return unfinished(request, forked)
        refusal = failures.refused(forked)
        assert refusal is not None  # the nursery returns no other hello
        return unfinished(request, refusal, forked)

    async def _dies_at_start(self, started: _Started, limit: float) -> bool:
        """Whether a forked worker says nothing: one whose warm process is dying may die with it, through no fault of
        the program, of which nothing has run yet.
        """
        try:
            dies = isinstance(await _within(limit, started), Failure)
        except BaseException:
            await self._end(started)
            raise
        if dies:
            await self._end(started)
        return dies

    async def _take(self, cwd: str | None) -> _Started:
        async with self._spare_lock:
            spare = self._spare
            if spare is not None and spare.serves(cwd):
                self._spare = None
                return spare
            await self._drop_spare()
        return await self._start(cwd)

    async def _renew(self, cwd: str | None) -> None:
        async with self._spare_lock:
            if self._closed or (self._spare is not None and self._spare.serves(cwd)):
                return
            await self._drop_spare()
            self._spare = await self._start(cwd)

    async def _drop_spare(self) -> None:
        spare, self._spare = self._spare, None
        if spare is not None:
            await self._end(spare)

    async def _start(self, cwd: str | None) -> _Started:
        worker = await start(self._command, cwd, self._env)
        logger.info("worker started pid=%d interpreter=%s", worker.pid, self.interpreter)
        return _Started(worker, asyncio.create_task(greet(worker)), cwd)

    async def _end(self, started: _Started) -> None:
        """End a worker even when the task that asks for it is cancelled meanwhile."""

        async def end() -> None:
            started.hello.cancel()
            await asyncio.gather(started.hello, return_exceptions=True)
            await started.worker.kill()

        await asyncio.shield(self._go(end()))

    def _go(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[None]) -> None:
        self._background.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.warning("a worker could not be started or ended: %s", error)
