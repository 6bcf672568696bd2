"""The runner of a workspace folder: finds the interpreter for each program and keeps a pool of workers for each."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

from inductoscope.protocol.messages import Failure, FailureKind
from inductoscope.protocol.report import Rung
from inductoscope.server import config, interpreter, machine
from inductoscope.server.bench.remembering import remembered
from inductoscope.server.interpreter import InterpreterError
from inductoscope.server.remote import RunnerError, elsewhere
from inductoscope.server.settings import Settings
from inductoscope.server.workers import (
    OnEvent,
    RunOutcome,
    RunRequest,
    Spare,
    WorkerCommand,
    WorkerPool,
    bootstrap_command,
    memory,
)
from inductoscope.server.workers.run import unfinished

logger = logging.getLogger("inductoscope.runner")

MEMORY_SHARE = 0.8
"""The part of the machine's memory that a run may hold when nothing is set."""


class FolderRunner:
    """Implements `ports.Runner`.  Programs of one folder can lie in different environments."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._pools: dict[tuple[str, ...], WorkerPool] = {}

    def interpreter(self, file: str) -> tuple[str, ...] | None:
        """See `ports.Runner`."""
        try:
            return command_of(self._settings, Path(file).parent)
        except InterpreterError:
            return None

    async def run(self, request: RunRequest, on_event: OnEvent) -> RunOutcome:
        """Do the request in a worker; an interpreter that is not there is a failure like any other.

        What was measured becomes part of the history, and is told with what became of the result before.
        """
        if request.rung is not Rung.MEASURE:
            return await self._run(request, on_event)
        found = await self._measured(request, on_event)
        torch = found.hello.torch if found.hello is not None else None
        return replace(found, report=await remembered(found.report, torch))

    async def _measured(self, request: RunRequest, on_event: OnEvent) -> RunOutcome:
        """Measure on the machine that the project names, else on this one."""
        try:
            command = elsewhere(config.nearest(Path(request.target.file).parent), request.cwd)
        except (config.ConfigError, RunnerError) as error:
            return unfinished(request, Failure(FailureKind.DEVICE, str(error)))
        if command is None:
            return await self._run(request, on_event)
        pool = WorkerPool("elsewhere", command=command, spare=Spare.NONE)
        try:
            return await pool.run(request, on_event)
        finally:
            await pool.close()

    async def _run(self, request: RunRequest, on_event: OnEvent) -> RunOutcome:
        try:
            words = command_of(self._settings, Path(request.target.file).parent)
        except InterpreterError as error:
            return unfinished(request, Failure(FailureKind.NO_INTERPRETER, str(error)))
        if words not in self._pools:
            self._pools[words] = WorkerPool(words[0], command=_command(words), spare=Spare.FORK)
        return await self._pools[words].run(_within_memory(request), on_event)

    async def close(self) -> None:
        """End the spare workers."""
        pools, self._pools = self._pools, {}
        for pool in pools.values():
            await pool.close()


def command_of(settings: Settings, folder: Path) -> tuple[str, ...]:
    """The interpreter for programs in `folder` and its flags.  Raises `InterpreterError`."""
    if settings.interpreter:
        program, *flags = settings.interpreter
        return (interpreter.locate(program, "the setting inductoscope.interpreter"), *flags)
    chosen = interpreter.choose(folder, configured=_configured(folder))
    logger.info("interpreter=%s because=%s", chosen.path, chosen.because)
    return (chosen.path,)


def make_runner(settings: Settings) -> FolderRunner:
    """The runner for a folder with these settings."""
    return FolderRunner(settings)


def _within_memory(request: RunRequest) -> RunRequest:
    """A run that is not told otherwise leaves the machine enough for the editor; it is told what the last one kept."""
    limit = request.memory_bytes or machine.share_of_memory(MEMORY_SHARE)
    return replace(request, memory_bytes=limit, memories=memory.users())


def _configured(folder: Path) -> str | None:
    try:
        return config.nearest(folder).python
    except config.ConfigError:
        return None  # said where the settings of the project are read


def _command(words: tuple[str, ...]) -> WorkerCommand:
    """Worker command lines that keep the interpreter's own flags."""
    plain = bootstrap_command(words[0])
    return lambda read_fd, write_fd: [words[0], *words[1:], *plain(read_fd, write_fd)[1:]]
