"""A scripted worker that speaks the real protocol: `Script` builds it, running this file plays it.

    command = Script().hello().take_run().progress("lowering").signal("SIGSEGV").command()

The script is a list of steps `[name, arguments]`, played in order; a played step is the method `_name` of `_Player`.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from inductoscope.protocol import codec, scratch
from inductoscope.protocol.frames import Channel
from inductoscope.protocol.messages import (
    PROTOCOL,
    Failure,
    FailureKind,
    FindingFound,
    Hello,
    LogLine,
    Progress,
    Run,
    RunDone,
    RunFailed,
    RungDone,
    from_wire,
    to_wire,
)
from inductoscope.protocol.own_devices import OwnDevice
from inductoscope.protocol.recording import Recording
from inductoscope.protocol.report import Finding, Rung, Span, Status, TargetReport


class Script:
    """Builds the steps of a fake worker; each method adds one and returns the script."""

    def __init__(self) -> None:
        self.steps: list[tuple[str, list[Any]]] = []

    def _add(self, step: str, *arguments: Any) -> Script:
        self.steps.append((step, list(arguments)))
        return self

    def hello(self, problem: str | None = None, protocol: int = PROTOCOL, triton: str | None = None) -> Script:
        return self._add("hello", problem, protocol, triton)

    def take_run(self) -> Script:
        """Wait for the request; later messages answer it."""
        return self._add("take_run")

    def progress(self, text: str) -> Script:
        return self._add("progress", text)

    def log(self, text: str) -> Script:
        return self._add("log", text)

    def finding(self, finding: Finding) -> Script:
        return self._add("finding", codec.to_json(finding))

    def rung_done(self, **changes: Any) -> Script:
        """Send a report of the target that is compiled, with the given fields (JSON form) replaced."""
        return self._add("rung_done", changes)

    def done(self, **changes: Any) -> Script:
        return self._add("done", changes)

    def recorded(self, card: Any, decisions: Any) -> Script:
        """Answer an errand with an OwnDevice and a Recording, both in JSON form, either of them None."""
        return self._add("recorded", card, decisions)

    def report_own(self) -> Script:
        """Put the device of the run into the report's message, with its clock where somebody described it."""
        return self._add("report_own")

    def failed(self, kind: FailureKind, message: str, place: Span | None = None) -> Script:
        return self._add("failed", kind.value, message, codec.to_json(place))

    def say(self, text: str) -> Script:
        """Print to standard error."""
        return self._add("say", text)

    def flood(self, count: int) -> Script:
        """Print `count` bytes without a line end to standard output."""
        return self._add("flood", count)

    def report_environment(self) -> Script:
        """Finish with a report whose message tells the process id and the working folder."""
        return self._add("report_environment")

    def signal(self, name: str) -> Script:
        """Die of the signal."""
        return self._add("signal", name)

    def exit(self, code: int) -> Script:
        return self._add("exit", code)

    def hang(self) -> Script:
        """Do nothing for good, whatever SIGTERM says."""
        return self._add("hang")

    def fork_hanging(self, pid_file: Path) -> Script:
        """Start a child that inherits the channel and hangs; its process id goes to `pid_file`."""
        return self._add("fork_hanging", str(pid_file))

    def start_daemon(self, pid_file: Path) -> Script:
        """Start a grandchild in a session of its own, whose parent ends; its process id goes to `pid_file`."""
        return self._add("start_daemon", str(pid_file))

    def make_folder(self) -> Script:
        """Make the temporary folder of a worker."""
        return self._add("make_folder")

    def write_pid(self, pid_file: Path) -> Script:
        return self._add("write_pid", str(pid_file))

    def touch_memory(self, count: int) -> Script:
        """Hold `count` bytes of resident memory."""
        return self._add("touch_memory", count)

    def raw(self, data: bytes) -> Script:
        """Write bytes that need not be a frame to the channel."""
        return self._add("raw", data.decode("latin-1"))

    def close_channel(self) -> Script:
        return self._add("close_channel")

    def wait_for_end_of_input(self) -> Script:
        return self._add("wait_for_end_of_input")

    def interpreter(self, folder: Path) -> str:
        """An executable in `folder` that plays this script when it is started as the user's Python."""
        script, program = folder / "interpreter.json", folder / "python"
        script.write_text(json.dumps(self.steps))
        stand_in = Path(__file__).with_name("fake_interpreter.py")
        program.write_text(f'#!/bin/sh\nexec {sys.executable} {stand_in} {script} "$@"\n')
        program.chmod(0o755)
        return str(program)

    def command(self) -> Any:
        """The worker command that plays this script."""
        text = json.dumps(self.steps)
        flags = ["-u", "-X", "faulthandler"]
        return lambda read_fd, write_fd: [sys.executable, *flags, __file__, str(read_fd), str(write_fd), text]


class _Player:
    def __init__(self, read_fd: int, write_fd: int) -> None:
        self._reader = os.fdopen(read_fd, "rb")
        self._writer = os.fdopen(write_fd, "wb")
        self._channel = Channel(self._reader, self._writer)
        self._run: Run | None = None
        self._held: list[bytes] = []

    def play(self, steps: list[tuple[str, list[Any]]]) -> None:
        for step, arguments in steps:
            getattr(self, f"_{step}")(*arguments)

    def _send(self, message: Any) -> None:
        self._channel.send(to_wire(message))

    def _report(self, changes: dict[str, Any]) -> TargetReport:
        assert self._run is not None
        target = self._run.target
        report = TargetReport(target.file, target.name, target.line, self._run.device, self._run.rung, Status.COMPILED)
        return codec.from_json(TargetReport, {**codec.to_json(report), **changes})

    def _hello(self, problem: str | None, protocol: int, triton: str | None) -> None:
        self._send(Hello(protocol, "3.11.0", sys.executable, os.getpid(), "2.13.0", triton, problem))

    def _take_run(self) -> None:
        message = from_wire(self._channel.receive())
        assert isinstance(message, Run)
        self._run = message

    def _progress(self, text: str) -> None:
        self._send(Progress(1, Rung.CAPTURE, text))

    def _log(self, text: str) -> None:
        self._send(LogLine("info", text))

    def _finding(self, value: Any) -> None:
        self._send(FindingFound(1, codec.from_json(Finding, value)))

    def _rung_done(self, changes: dict[str, Any]) -> None:
        self._send(RungDone(1, Rung.CAPTURE, self._report(changes)))

    def _done(self, changes: dict[str, Any]) -> None:
        self._send(RunDone(1, self._report(changes)))

    def _recorded(self, card: Any, decisions: Any) -> None:
        own = None if card is None else codec.from_json(OwnDevice, card)
        decided = None if decisions is None else codec.from_json(Recording, decisions)
        self._send(RunDone(1, self._report({}), card=own, decisions=decided))

    def _report_own(self) -> None:
        own = self._run.own
        self._done({"message": f"{self._run.device} {own.device.clock_mhz if own is not None else '-'}"})

    def _failed(self, kind: str, message: str, place: Any) -> None:
        span = None if place is None else codec.from_json(Span, place)
        self._send(RunFailed(1, Failure(FailureKind(kind), message, span, "Traceback ...")))

    def _say(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    def _flood(self, count: int) -> None:
        sys.stdout.write("x" * count)
        sys.stdout.flush()

    def _report_environment(self) -> None:
        self._done({"message": f"{os.getpid()} {Path.cwd()}"})

    def _signal(self, name: str) -> None:
        os.kill(os.getpid(), signal.Signals[name])
        self._hang()

    def _exit(self, code: int) -> None:
        os._exit(code)

    def _hang(self) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        while True:
            time.sleep(3600)

    def _fork_hanging(self, pid_file: str) -> None:
        pid = os.fork()
        if pid == 0:
            self._hang()
        Path(pid_file).write_text(str(pid))

    def _start_daemon(self, pid_file: str) -> None:
        parent = os.fork()
        if parent == 0:
            os.setsid()
            pid = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"]).pid
            Path(pid_file).write_text(str(pid))
            os._exit(0)
        os.waitpid(parent, 0)

    def _make_folder(self) -> None:
        scratch.make()

    def _write_pid(self, pid_file: str) -> None:
        Path(pid_file).write_text(str(os.getpid()))

    def _touch_memory(self, count: int) -> None:
        self._held.append(b"x" * count)

    def _raw(self, text: str) -> None:
        self._writer.write(text.encode("latin-1"))
        self._writer.flush()

    def _close_channel(self) -> None:
        self._writer.close()

    def _wait_for_end_of_input(self) -> None:
        assert self._channel.receive() is None


def play(read_fd: int, write_fd: int, steps: list[tuple[str, list[Any]]]) -> None:
    """Be the worker that the steps of a `Script` describe; one that is to be forked says that it cannot be."""
    if read_fd == write_fd:
        write_fd, steps = os.dup(read_fd), [("hello", [None, PROTOCOL, None]), ("wait_for_end_of_input", [])]
    _Player(read_fd, write_fd).play(steps)


if __name__ == "__main__":
    play(int(sys.argv[1]), int(sys.argv[2]), json.loads(sys.argv[3]))
