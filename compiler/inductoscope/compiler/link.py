"""The worker's end of the conversation with the server.

It is read in a thread of its own from the first moment on: its end means that the server is gone, and then this process
has no reason to live, whatever the program is doing.  A process forked by the program gets none of it.
"""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import threading
from collections.abc import Callable

from inductoscope.protocol import codec, frames, messages

SERVER_GONE = 3
"""Exit code of a worker whose server went away or talks nonsense, where it leads no process group to kill."""

CHANNEL_LOST = 4
"""Exit code of a worker whose descriptors the program closed."""

_LOST = "The program closed file descriptors that it did not open (os.closerange?), those of Inductoscope among them.\n"


class Link:
    """Messages over the two descriptors; `on_gone` runs before the process exits because the server is gone."""

    def __init__(self, read_fd: int, write_fd: int, on_gone: Callable[[], None]) -> None:
        self._descriptors = (read_fd, write_fd)
        self._owner = os.getpid()
        self._on_gone = on_gone
        self._runs: queue.SimpleQueue[messages.Run] = queue.SimpleQueue()
        # The files must not close the descriptors when they are collected in a forked child.
        reader = os.fdopen(read_fd, "rb", closefd=False)
        writer = os.fdopen(write_fd, "wb", closefd=False)
        self._channel = frames.Channel(reader, writer)
        os.register_at_fork(after_in_child=self._sever)
        threading.Thread(target=self._read, name="inductoscope-link", daemon=True).start()

    @property
    def severed(self) -> bool:
        """Whether this process is a fork of the worker, which must not speak for it."""
        return os.getpid() != self._owner

    def send(self, message: messages.Message) -> None:
        """Send one message; exits when the server is gone.  Raises `FrameError` when the message is too large."""
        if self.severed:
            return
        try:
            self._channel.send(messages.to_wire(message))
        except frames.FrameError:
            raise
        except BrokenPipeError:
            self._leave()
        except (OSError, ValueError):
            self._lost()

    @property
    def has_run(self) -> bool:
        """Whether the server has already asked for a run."""
        return not self._runs.empty()

    def run_within(self, seconds: float) -> messages.Run | None:
        """The run that this worker is asked for, or None when none comes for so long."""
        try:
            return self._runs.get(timeout=seconds)
        except queue.Empty:
            return None

    def wait_for_run(self) -> messages.Run:
        """The run that this worker is asked for."""
        return self._runs.get()

    def _read(self) -> None:
        try:
            while (value := self._channel.receive()) is not None:
                message = messages.from_wire(value)
                if isinstance(message, messages.Run):
                    self._runs.put(message)
        except (frames.FrameError, codec.CodecError):
            pass
        except OSError:
            self._lost()
        self._leave()

    def _leave(self) -> None:
        with contextlib.suppress(Exception):
            self._on_gone()
        if os.getpgrp() == self._owner:  # the children that the program started have nobody else to end them
            os.killpg(0, signal.SIGKILL)
        os._exit(SERVER_GONE)

    def _lost(self) -> None:
        """End a process that can neither hear nor speak, although its server is there."""
        with contextlib.suppress(Exception):
            self._on_gone()
        with contextlib.suppress(OSError):
            os.write(2, _LOST.encode())
        os._exit(CHANNEL_LOST)

    def _sever(self) -> None:
        for descriptor in self._descriptors:
            with contextlib.suppress(OSError):
                os.close(descriptor)
