"""One warm process as the server sees it: have it fork, and hear of its children.

Which warm processes there are and what each has ready is the nursery's business.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import logging
import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from inductoscope.protocol import frames, messages
from inductoscope.protocol.codec import CodecError
from inductoscope.protocol.messages import Ended, Fork, Forked, Hello, Layer, Warmed
from inductoscope.server.workers import process
from inductoscope.server.workers.command import WorkerCommand
from inductoscope.server.workers.process import UNKNOWN_END, Child, WorkerProcess

logger = logging.getLogger("inductoscope.warm")

FORK_TIMEOUT_S = 20.0
"""How long a fork may take: milliseconds on a quiet machine, and a fork comes after what its parent is doing."""


class WarmError(OSError):
    """A warm process cannot fork; the message says why."""


@dataclass(frozen=True)
class Stamp:
    """How some files were: what changes when one of them is written, replaced or removed."""

    states: Mapping[str, tuple[int, int, int] | None]

    @classmethod
    def of(cls, files: tuple[str, ...]) -> Stamp:
        """The files as they are now."""
        return cls({file: _state(file) for file in files})

    def changed(self) -> frozenset[str]:
        """The files that are not as they were."""
        return frozenset(file for file, state in self.states.items() if _state(file) != state)


def _state(file: str) -> tuple[int, int, int] | None:
    try:
        found = Path(file).stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


class ForkedChild:
    """A process that was forked from a warm one, which tells its end.

    Should the warm one end first, the child goes on; then the system tells when it ends, but not how.
    """

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._end: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        try:
            self._descriptor: int | None = os.pidfd_open(pid)
        except OSError:  # it has ended, which is about to be told, or there is no room for a descriptor
            self._descriptor = None

    @property
    def returncode(self) -> int | None:
        """How it ended; None while it runs."""
        return self._end.result() if self._end.done() else None

    async def wait(self) -> int:
        """Wait for its end."""
        return await asyncio.shield(self._end)

    def ended(self, returncode: int) -> None:
        """Say that it has ended."""
        if self._descriptor is not None:
            asyncio.get_running_loop().remove_reader(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = None
        if not self._end.done():
            self._end.set_result(returncode)

    def orphaned(self) -> None:
        """Say that nobody tells its end any more."""
        if self._descriptor is None:
            self.ended(UNKNOWN_END)
        else:
            asyncio.get_running_loop().add_reader(self._descriptor, self.ended, UNKNOWN_END)


class WarmProcess:
    """A warm process whose messages come from `reader` and which is asked over `control`."""

    def __init__(self, control: socket.socket, reader: asyncio.StreamReader, cleanup: contextlib.ExitStack) -> None:
        self._control = control
        self._reader = reader
        self._cleanup = cleanup
        self._children: dict[int, ForkedChild] = {}
        self._asked: collections.deque[asyncio.Future[int]] = collections.deque()
        self._stamp = Stamp({})
        self._listener: asyncio.Task[None] | None = None
        self.lost = False

    @property
    def is_busy(self) -> bool:
        """Whether a child of it runs, or is being made."""
        return bool(self._children or self._asked)

    def changed(self) -> frozenset[str]:
        """The files because of which it is out of date."""
        return self._stamp.changed()

    def depends_on(self, file: str) -> bool:
        """Whether it was made with what is in `file`."""
        return file in self._stamp.states

    async def get_ready(self) -> Hello:
        """Wait until it is ready.  Raises `WarmError` when it cannot be used."""
        hello = await self._next()
        if not isinstance(hello, Hello):
            raise WarmError("its first message is no hello")
        if hello.problem is not None:
            raise WarmError(hello.problem)
        await self.get_warm()
        return hello

    async def get_warm(self) -> None:
        """After its hello: wait for what it has ready, and listen to it from now on.  Raises `WarmError`."""
        warmed = await self._next()
        if not isinstance(warmed, Warmed):
            raise WarmError("it does not say what it has ready")
        if warmed.unfit is not None:
            raise WarmError(warmed.unfit)
        self._stamp = Stamp.of(warmed.files)
        self._listener = asyncio.create_task(self._listen())

    async def fork_worker(self, cwd: str | None) -> WorkerProcess:
        """A worker for one run.  Raises `WarmError`."""

        async def child(mark: str, ends: tuple[int, int, int]) -> Child:
            return await self._fork(Fork(mark, cwd), ends)

        return await process.fork(child)

    async def fork_layer(self, layer: Layer, cwd: str | None) -> WarmProcess:
        """A warm process that is to have `layer` ready too; it is not yet.  Raises `WarmError`."""
        with contextlib.ExitStack() as cleanup:
            own, other = socket.socketpair()
            cleanup.callback(own.close)
            with other:
                reader = await process.reader_of(os.dup(own.fileno()), cleanup)
                child = await self._fork(Fork("", cwd, layer), (other.fileno(),))
                self._children.pop(child.pid, None)  # it ends with its own socket, and is no run
                child.ended(UNKNOWN_END)
            return WarmProcess(own, reader, cleanup.pop_all())

    async def childless(self) -> None:
        """Wait until no run is in a child of it."""
        while self._children:
            await asyncio.wait([asyncio.ensure_future(child.wait()) for child in self._children.values()])
            await asyncio.sleep(0)

    async def retire(self) -> None:
        """Let it end when no run is in a child of it any more."""
        await self.childless()
        await self.close()

    async def close(self) -> None:
        """Let it end.  Runs in children of it go on."""
        self._lose()
        if self._listener is not None:
            self._listener.cancel()
            await asyncio.gather(self._listener, return_exceptions=True)

    async def _fork(self, request: Fork, descriptors: tuple[int, ...]) -> ForkedChild:
        if self.lost:
            raise WarmError("it has ended")
        answer: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._asked.append(answer)
        try:
            socket.send_fds(self._control, [frames.encode(messages.to_wire(request))], descriptors)
        except OSError as error:
            self._lose()
            raise WarmError(f"it cannot be asked ({error})") from error
        try:
            pid = await asyncio.wait_for(asyncio.shield(answer), FORK_TIMEOUT_S)
        except asyncio.TimeoutError:
            self._lose()
            raise WarmError(f"it did not answer within {FORK_TIMEOUT_S:g} s") from None
        return self._children[pid]

    async def _next(self) -> messages.Message:
        try:
            value = await frames.read_frame(self._reader)
            if value is None:
                raise WarmError("it ended while it got ready")
            return messages.from_wire(value)
        except CodecError as error:
            raise WarmError(f"it talks nonsense: {error}") from error

    async def _listen(self) -> None:
        try:
            while (value := await frames.read_frame(self._reader)) is not None:
                self._hear(messages.from_wire(value))
        except (OSError, CodecError) as error:
            logger.warning("a warm process talks nonsense: %s", error)
        self._lose()

    def _hear(self, message: messages.Message) -> None:
        match message:
            case Forked(pid=None):
                self._asked.popleft().set_exception(WarmError("the system has no room for another process"))
            case Forked(pid=int(pid)):
                self._children[pid] = ForkedChild(pid)
                self._asked.popleft().set_result(pid)
            case Ended() if message.pid in self._children:
                self._children.pop(message.pid).ended(message.returncode)

    def _lose(self) -> None:
        """It has ended or is given up: what it was asked for does not come, and its children are on their own."""
        if self.lost:
            return
        self.lost = True
        self._cleanup.close()
        for answer in self._asked:
            if not answer.done():
                answer.set_exception(WarmError("it has ended"))
                answer.exception()  # whoever asked may have given up
        self._asked.clear()
        for child in self._children.values():
            child.orphaned()
        self._children.clear()


async def start(command: WorkerCommand, env: Mapping[str, str] | None) -> tuple[WorkerProcess, WarmProcess]:
    """Start the first warm process of an interpreter; `WorkerProcess` is for its hello, its output and its end.

    Raises `OSError` when the interpreter cannot be started.
    """
    worker, control = await process.start_warm(command, env)
    return worker, WarmProcess(control, worker.stream, contextlib.ExitStack())
