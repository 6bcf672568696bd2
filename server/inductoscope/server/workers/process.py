"""One worker process: start, talk, collect its output, end it and everything it started.

Knows frames and messages, not what a run is.  A worker leads a session of its own, so that one signal reaches all of
its children; descendants that left the group are found through the process table, and daemons by a mark in their
environment.  What the process prints goes to the log and, the last lines of it, to `tail`: standard output is never a
protocol channel.  A worker is started, or forked from a warm process, which is then its parent.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import logging
import os
import signal
import socket
import sys
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from inductoscope.protocol import frames, messages, scratch
from inductoscope.server.workers import family
from inductoscope.server.workers.command import WorkerCommand

logger = logging.getLogger("inductoscope.worker")

TAIL_LINES = 400
LINE_CHARACTERS = 2000
GRACE_S = 0.5
"""How long a process may take to end after SIGTERM, and its pipes to run dry after its end."""

DAEMON_ROUNDS = 20
"""How often what a program left running is looked for and killed, since it may go on starting more."""

UNKNOWN_END = 1 << 16
"""The return code of a process of which is known only that it ended."""

_MARK = "INDUCTOSCOPE_WORKER"


@dataclass(frozen=True)
class Exit:
    """How a process ended: with an exit code, or by a signal (`SIGSEGV`); neither is known of some."""

    code: int | None
    signal: str | None

    @classmethod
    def of(cls, returncode: int) -> Exit:
        """The ending that a POSIX return code (negative for a signal) stands for."""
        if returncode == UNKNOWN_END:
            return cls(None, None)
        if returncode >= 0:
            return cls(returncode, None)
        try:
            return cls(None, signal.Signals(-returncode).name)
        except ValueError:
            return cls(None, f"signal {-returncode}")


class Child(Protocol):
    """A process whose end is told to us."""

    @property
    def pid(self) -> int:
        """Process id."""

    @property
    def returncode(self) -> int | None:
        """How it ended (negative for a signal); None while it runs."""

    async def wait(self) -> int:
        """Wait for its end."""


ForkChild: TypeAlias = Callable[[str, tuple[int, int, int]], Awaitable[Child]]
"""Forks a worker that has a mark and three descriptors: to read from, to write to, for what is printed."""


class WorkerProcess:
    """A running worker.  Made by `start` or `fork`; `kill` must be awaited once, whatever happened."""

    def __init__(
        self,
        process: Child,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        output: asyncio.StreamReader,
        pipes: contextlib.ExitStack,
        mark: str,
    ) -> None:
        self._process = process
        self._mark = mark
        self._pipes = pipes
        self._reader = reader
        self._writer = writer
        self._tail: collections.deque[str] = collections.deque(maxlen=TAIL_LINES)
        self._collector = asyncio.create_task(self._collect(output))
        self._reaper = asyncio.create_task(self._reap())

    @property
    def pid(self) -> int:
        """Process id, which is the group id too."""
        return self._process.pid

    @property
    def stream(self) -> asyncio.StreamReader:
        """Where its messages come from, for whoever takes over from `receive`."""
        return self._reader

    @property
    def tail(self) -> tuple[str, ...]:
        """The last lines that the process and its children printed."""
        return tuple(self._tail)

    @property
    def alive(self) -> bool:
        """Whether the process has not ended yet."""
        return self._process.returncode is None

    async def send(self, message: messages.Message) -> None:
        """Write one message.  Raises `OSError` when the worker is gone."""
        self._writer.write(frames.encode(messages.to_wire(message)))
        await self._writer.drain()

    async def receive(self) -> messages.Message | None:
        """The next message, or None when there will be none.  Raises `FrameError` or `CodecError` on garbage."""
        value = await frames.read_frame(self._reader)
        return None if value is None else messages.from_wire(value)

    def memory_bytes(self) -> int:
        """Resident memory of the process and its descendants; pages that they share count for each."""
        return family.resident_bytes(self.pid)

    async def shared_once_bytes(self) -> int:
        """Memory of the process and its descendants; pages that they share, as after a fork, count once."""
        return await asyncio.to_thread(family.proportional_bytes, self.pid)

    async def dump_stacks(self) -> None:
        """Ask the process to print where its threads are; one that does not know the request dies of it."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGUSR2)
        await asyncio.wait({self._reaper}, timeout=GRACE_S)

    async def ended(self) -> Exit | None:
        """How the process ended, with its last output collected; None when it goes on although its channel closed."""
        await asyncio.wait({self._reaper}, timeout=GRACE_S)
        if self._process.returncode is None:
            return None
        await asyncio.wait({self._collector}, timeout=GRACE_S)
        return Exit.of(self._process.returncode)

    async def kill(self) -> None:
        """End the process and all that it started, remove what it left on the disk, and free the pipes.

        Cancelled, as when the server itself is about to end, it does so at once instead of in order.
        """
        try:
            await self._end_in_order()
        except asyncio.CancelledError:
            if self.alive:
                self._signal(signal.SIGKILL, family.members(self.pid))
            self._end_daemons()
            scratch.remove_of(self.pid)
            raise
        finally:
            self._collector.cancel()
            self._pipes.close()

    async def _end_in_order(self) -> None:
        if self.alive:
            descendants = family.members(self.pid)
            self._signal(signal.SIGTERM, descendants)
            await asyncio.wait({self._reaper}, timeout=GRACE_S)
            self._signal(signal.SIGKILL, descendants)
        await asyncio.shield(self._reaper)
        self._end_daemons()
        await asyncio.to_thread(scratch.remove_of, self.pid)

    def _signal(self, number: signal.Signals, descendants: Sequence[family.Member]) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)
        family.send_signal(descendants, number)

    def _end_daemons(self) -> None:
        for _ in range(DAEMON_ROUNDS):
            daemons = family.marked(self._mark)
            if not daemons:
                return
            family.send_signal(daemons, signal.SIGKILL)

    async def _reap(self) -> None:
        await self._process.wait()
        # Children that outlive the worker would hold its pipes open and hide its end.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    async def _collect(self, output: asyncio.StreamReader) -> None:
        rest = ""
        while chunk := await output.read(65536):
            *lines, rest = (rest + chunk.decode("utf-8", "replace")).split("\n")
            for line in lines:
                self._log(line)
            rest = rest[-LINE_CHARACTERS:]
        if rest:
            self._log(rest)

    def _log(self, line: str) -> None:
        line = line.rstrip()[:LINE_CHARACTERS]
        if line:
            self._tail.append(line)
            logger.info("pid=%d %s", self.pid, line)


async def start(command: WorkerCommand, cwd: str | None, env: Mapping[str, str] | None) -> WorkerProcess:
    """Start a worker.  Raises `OSError` when the interpreter cannot be started."""

    async def spawn(mark: str, ends: tuple[int, int, int]) -> Child:
        child_read, child_write, child_output = ends
        return await _spawn(command(child_read, child_write), ends[:2], child_output, cwd, env, mark)

    return await fork(spawn)


async def fork(child: ForkChild) -> WorkerProcess:
    """A worker whose process `child` makes.  Raises `OSError` as that does."""
    mark = f"{_MARK}={uuid.uuid4().hex}"
    with contextlib.ExitStack() as cleanup:
        read_end, child_write = os.pipe()
        child_read, write_end = os.pipe()
        output_end, child_output = os.pipe()
        ends = child_read, child_write, child_output
        with contextlib.ExitStack() as child_ends:
            for descriptor in ends:
                child_ends.callback(os.close, descriptor)
            # The pipes are connected first: from the moment that the process exists, somebody must be able to end it.
            reader, output = await reader_of(read_end, cleanup), await reader_of(output_end, cleanup)
            writer = await _writer(write_end, cleanup)
            process = await child(mark, ends)
        return WorkerProcess(process, reader, writer, output, cleanup.pop_all(), mark)


async def start_warm(command: WorkerCommand, env: Mapping[str, str] | None) -> tuple[WorkerProcess, socket.socket]:
    """Start a process that others are forked from, and the socket on which it is asked to.

    Its messages can be read from the process as those of any worker.  Raises `OSError`.
    """
    mark = f"{_MARK}={uuid.uuid4().hex}"
    with contextlib.ExitStack() as cleanup:
        own, other = socket.socketpair()
        output_end, child_output = os.pipe()
        with contextlib.ExitStack() as child_ends:
            child_ends.callback(os.close, child_output)
            child_ends.callback(other.close)
            cleanup.callback(own.close)
            reader, output = await reader_of(os.dup(own.fileno()), cleanup), await reader_of(output_end, cleanup)
            writer = await _writer(os.dup(own.fileno()), cleanup)
            channel = other.fileno()
            process = await _spawn(command(channel, channel), (channel,), child_output, None, env, mark)
        return WorkerProcess(process, reader, writer, output, cleanup.pop_all(), mark), own


async def _spawn(
    words: Sequence[str],
    channel: Sequence[int],
    output: int,
    cwd: str | None,
    env: Mapping[str, str] | None,
    mark: str,
) -> Child:
    if sys.platform == "win32":
        raise OSError("workers need POSIX process groups, which Windows does not have; use WSL")
    name, _, value = mark.partition("=")
    return await asyncio.create_subprocess_exec(
        *words,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        pass_fds=channel,
        start_new_session=True,
        cwd=cwd,
        env={**(os.environ if env is None else env), name: value},
    )


async def reader_of(descriptor: int, cleanup: contextlib.ExitStack) -> asyncio.StreamReader:
    """A stream of what comes from a pipe or a socket, until `cleanup` closes it."""
    stream = asyncio.StreamReader()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(stream), os.fdopen(descriptor, "rb", 0)
    )
    cleanup.callback(transport.close)
    return stream


async def _writer(descriptor: int, cleanup: contextlib.ExitStack) -> asyncio.StreamWriter:
    loop = asyncio.get_running_loop()
    transport, protocol = await loop.connect_write_pipe(
        asyncio.streams.FlowControlMixin, os.fdopen(descriptor, "wb", 0)
    )
    cleanup.callback(transport.close)
    return asyncio.StreamWriter(transport, protocol, None, loop)
