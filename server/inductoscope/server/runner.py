"""The runner of a workspace folder: its interpreter, found when first needed, and a pool of workers in it."""

from __future__ import annotations

import sys

from inductoscope.server.settings import Settings
from inductoscope.server.workers import OnEvent, RunOutcome, RunRequest, WorkerCommand, WorkerPool, bootstrap_command


class FolderRunner:
    """Implements `ports.Runner`."""

    def __init__(self, folder: str, settings: Settings) -> None:
        words = settings.interpreter or (sys.executable,)
        self._pool = WorkerPool(words[0], command=_command(words))

    async def run(self, request: RunRequest, on_event: OnEvent) -> RunOutcome:
        """Do the request in a worker."""
        return await self._pool.run(request, on_event)

    async def close(self) -> None:
        """End the spare worker."""
        await self._pool.close()


def make_runner(folder: str, settings: Settings) -> FolderRunner:
    """The runner for a folder with these settings."""
    return FolderRunner(folder, settings)


def _command(words: tuple[str, ...]) -> WorkerCommand:
    """Worker command lines that keep the interpreter's own flags."""
    plain = bootstrap_command(words[0])
    return lambda read_fd, write_fd: [words[0], *words[1:], *plain(read_fd, write_fd)[1:]]
