"""The pool: how many workers run at once, and the spare that has imported torch before it is needed.

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
from inductoscope.server.workers.process import WorkerProcess, start
from inductoscope.server.workers.run import OnEvent, RunOutcome, RunRequest, converse, greet, unfinished

logger = logging.getLogger("inductoscope.pool")


class Spare(enum.Enum):
    """Whether the pool keeps one worker started ahead of the next run."""

    KEEP = "keep"
    NONE = "none"


@dataclass(frozen=True)
class _Started:
    """A started worker and the task that waits for its hello."""

    worker: WorkerProcess
    hello: asyncio.Task[Hello | Failure]
    cwd: str | None

    def serves(self, cwd: str | None) -> bool:
        return self.cwd == cwd and self.worker.alive


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

    async def run(self, request: RunRequest, on_event: OnEvent) -> RunOutcome:
        """Do `request`.  Never raises for anything a worker does; cancelling kills the worker and all it started."""
        async with self._slots:
            if self._closed:
                return unfinished(request, failures.pool_closed())
            try:
                started = await self._take(request.cwd)
            except OSError as error:
                return unfinished(request, failures.no_interpreter(self.interpreter, error))
            try:
                hello = await started.hello
                if isinstance(hello, Failure):
        return await fallback.run(self._once, request, on_event)

    async def _once(self, request: RunRequest, on_event: OnEvent) -> RunOutcome:
                    return unfinished(request, hello)
                if self._more():
                    self._go(self._renew(request.cwd))
                return await converse(started.worker, hello, request, on_event)
            finally:
                await self._end(started)
                if self._policy is Spare.KEEP and not self._closed:
                    self._go(self._renew(request.cwd))

    async def prepare(self, cwd: str | None = None) -> Hello | Failure:
        """Have a spare ready for `cwd`; returns what it said, or why none can be started."""
        try:
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
        await asyncio.gather(*self._background, return_exceptions=True)

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
