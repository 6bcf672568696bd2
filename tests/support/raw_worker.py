"""A worker process driven by hand: two pipes, one run, all messages."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import inductoscope
from inductoscope.protocol import frames, messages
from inductoscope.protocol.messages import (
    Failure,
    Hello,
    Message,
    Run,
    RunDone,
    RunFailed,
    Target,
    TargetKind,
)
from inductoscope.protocol.report import Rung, TargetReport

PARTS = [str(Path(part).resolve()) for part in inductoscope.__path__]
BOOTSTRAP = next(path for part in PARTS if (path := Path(part, "compiler", "bootstrap.py")).is_file())


@dataclass(frozen=True)
class Talk:
    """What a worker said and how it ended."""

    messages: tuple[Message, ...]
    output: str
    exit_code: int

    @property
    def hello(self) -> Hello:
        first = self.messages[0]
        assert isinstance(first, Hello), self.output
        return first

    @property
    def report(self) -> TargetReport:
        last = self.messages[-1]
        assert isinstance(last, RunDone), (last, self.output)
        return last.report

    @property
    def failure(self) -> Failure:
        last = self.messages[-1]
        assert isinstance(last, RunFailed), (last, self.output)
        return last.failure


class RawWorker:
    """A started worker; `finish` reads what it says until the end."""

    def __init__(self, interpreter: str = sys.executable, cwd: Path | None = None) -> None:
        read_end, child_write = os.pipe()
        child_read, write_end = os.pipe()
        self.process = subprocess.Popen(
            [interpreter, str(BOOTSTRAP), str(child_read), str(child_write), *PARTS],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=(child_read, child_write),
            cwd=cwd,
            start_new_session=True,
        )
        os.close(child_write)
        os.close(child_read)
        self._reader, self._writer = os.fdopen(read_end, "rb"), os.fdopen(write_end, "wb")
        self._channel = frames.Channel(self._reader, self._writer)

    def receive(self) -> Message | None:
        value = self._channel.receive()
        return None if value is None else messages.from_wire(value)

    def send(self, message: Message) -> None:
        self._channel.send(messages.to_wire(message))

    def hang_up(self) -> None:
        self._writer.close()
        self._reader.close()

    def finish(self, before: Sequence[Message] = ()) -> Talk:
        said = list(before)
        while (message := self.receive()) is not None:
            said.append(message)
        output, _ = self.process.communicate(timeout=60)
        self.hang_up()
        return Talk(tuple(said), output.decode("utf-8", "replace"), self.process.returncode)


def do(request: Run, cwd: Path | None = None) -> Talk:
    """One run in a worker of its own."""
    worker = RawWorker(cwd=cwd)
    worker.send(request)
    return worker.finish()


def a_run(
    file: Path,
    entry: str = "Model",
    *,
    kind: TargetKind = TargetKind.MODULE_CLASS,
    rung: Rung = Rung.CAPTURE,
    device: str = "cpu",
    comment: str | None = None,
    overlays: dict[str, str] | None = None,
) -> Run:
    """The request for one target of `file`."""
    name = f"{entry}.forward" if kind is TargetKind.MODULE_CLASS else entry
    target = Target(str(file), name, 1, kind, entry, comment=comment)
    return Run(1, target, device, rung, overlays=overlays or {})
