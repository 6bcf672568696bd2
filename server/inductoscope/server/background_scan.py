"""Looking for targets in a text that is too large to be read between two keystrokes: in a process of its own.

Reading Python holds up everything else in its process, a second for some ten thousand lines.  A newer text ends the
reading of the older one; what was known before stays until there is an answer.  Knows nothing of what it is for.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import logging
import os
import pickle
import sys
from collections.abc import Callable, Collection

from inductoscope.server.clock import Clock
from inductoscope.server.pauses import Pauses
from inductoscope.server.positions import Text
from inductoscope.server.targets import Scan, scan

logger = logging.getLogger("inductoscope.scan")

_MAIN = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from {0} import main; main()"

Done = Callable[[str, Text, Scan], None]


class BackgroundScans:
    """Scans one text of each path at a time, once its author pauses, and tells `done` what it found."""

    def __init__(self, clock: Clock, done: Done) -> None:
        self._clock = clock
        self._done = done
        self._pauses = Pauses(clock, self._pause_is_over)
        self._waiting: dict[str, tuple[Text, tuple[str, ...]]] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._took_s: dict[str, float] = {}

    def begin(self, path: str, text: Text, wanted: Collection[str]) -> None:
        """Scan this text, and no older one of that path; `wanted` as in `targets.scan`."""
        self._end(path)
        self._waiting[path] = (text, tuple(wanted))
        if path in self._took_s:
            self._pauses.begin(path, self._took_s[path])
        else:
            self._pause_is_over(path)

    def stop(self, path: str) -> None:
        """Nobody is interested in that path any more."""
        self._end(path)
        self._took_s.pop(path, None)

    def is_at_work(self, path: str) -> bool:
        """Whether a text of that path is being scanned, or is about to be."""
        return path in self._waiting or path in self._tasks

    async def close(self) -> None:
        """Stop all."""
        tasks = list(self._tasks.values())
        for path in {*self._waiting, *self._tasks}:
            self.stop(path)
        await asyncio.gather(*tasks, return_exceptions=True)

    def _end(self, path: str) -> None:
        self._pauses.stop(path)
        self._waiting.pop(path, None)
        task = self._tasks.pop(path, None)
        if task is not None:
            task.cancel()

    def _pause_is_over(self, path: str) -> None:
        text, wanted = self._waiting.pop(path)
        task = asyncio.ensure_future(self._scan(path, text, wanted))
        self._tasks[path] = task
        task.add_done_callback(functools.partial(self._ended, path))

    async def _scan(self, path: str, text: Text, wanted: tuple[str, ...]) -> None:
        began = self._clock.time()
        found = await in_process(text.source, path, wanted)
        self._took_s[path] = self._clock.time() - began
        del self._tasks[path]
        self._done(path, text, found)

    def _ended(self, path: str, task: asyncio.Task[None]) -> None:
        if self._tasks.get(path) is task:
            del self._tasks[path]
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("a text could not be scanned: %s", path, exc_info=error)


async def in_process(text: str, path: str, wanted: tuple[str, ...]) -> Scan:
    """`targets.scan` in a process of its own, which ends when this is cancelled.

    A process that fails, as one without enough memory does, has found nothing.
    """
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        _MAIN.format(__name__),
        json.dumps(sys.path),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        output, _ = await process.communicate(pickle.dumps((text, path, wanted)))
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    if process.returncode != 0:
        logger.warning("%s is too large to be read: its targets are not known (exit %s)", path, process.returncode)
        return Scan((), ())
    found: Scan = pickle.loads(output)
    return found


def main() -> None:
    """Serve one request of `in_process`."""
    if hasattr(os, "nice"):
        os.nice(10)
    text, path, wanted = pickle.load(sys.stdin.buffer)
    sys.stdout.buffer.write(pickle.dumps(scan(text, path, wanted)))
