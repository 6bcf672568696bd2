"""The compiler's own warm process without torch: the code that forks is the real one, a run does what its comment says.

    command()                          # the worker command of a `WorkerPool`
    command(installed=folder)          # `folder` is what is installed
    command(unfit="...")               # a process that must not be forked

A run's comment is one of `pid`, `group`, `cwd`, `mark`, `descriptors`, `daemon FILE`, `signal N`, `exit N`, `hang`,
`hang-with-child FILE`, `memory MIB`, `kill-parent`, `kill-parent-and-end`; the report's message is what it tells.
"""

from __future__ import annotations

import functools
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from inductoscope.compiler import bootstrap
from inductoscope.protocol.messages import PROTOCOL, Hello, Run, RunDone, Warmed
from inductoscope.protocol.report import Status, TargetReport


def command(installed: Path | None = None, unfit: str | None = None, problem: str | None = None) -> Any:
    """The command line of such a process."""
    settings = json.dumps({"installed": str(installed or Path(__file__)), "unfit": unfit, "problem": problem})
    return lambda read_fd, write_fd: [sys.executable, __file__, str(read_fd), str(write_fd), settings]


def main() -> None:
    """Be a warm process, or a worker that was started."""
    settings = json.loads(sys.argv[3])
    channel = [bootstrap.take_away(int(descriptor)) for descriptor in dict.fromkeys(sys.argv[1:3])]
    bootstrap.redirect_standard_streams()
    from inductoscope.compiler import worker

    worker.serve = _do
    hello = Hello(PROTOCOL, "3.11.0", sys.executable, os.getpid(), "2.13.0", problem=settings["problem"])
    folder = worker.own_folder(lambda _: None)
    if len(channel) == 2:
        worker.converse(channel[0], channel[1], folder, lambda: hello)
    _be_warm(channel[0], settings, hello)


def _be_warm(descriptor: int, settings: dict[str, Any], hello: Hello) -> None:
    from inductoscope.compiler.warm import layers, process
    from inductoscope.compiler.warm.control import Control

    layers.add = lambda layer, *_: layers.Made((str(layer.device),), Warmed(()))
    process._serve(
        Control(descriptor),
        hello if hello.problem else replace(hello, warm=("torch",)),
        _World(),  # type: ignore[arg-type]
        Warmed((settings["installed"],), settings["unfit"]),
    )


class _World:
    folder = Path("/")

    def renew(self, folder: Path) -> None:
        """Nothing of a process without torch has to be made anew."""


def _do(run: Run, link: Any) -> None:
    words = (run.target.comment or "").split()
    print("last words", flush=True)
    actions: dict[str, Callable[..., str]] = {
        "pid": lambda: f"{os.getpid()} {os.getppid()}",
        "group": lambda: f"{os.getpid()} {os.getpgid(0)} {os.getsid(0)}",
        "cwd": lambda: str(Path.cwd()),
        "mark": _mark,
        "descriptors": lambda: " ".join(sorted(_descriptors())),
        "daemon": _daemon,
        "signal": lambda number: str(os.kill(os.getpid(), int(number))),
        "exit": lambda code: os._exit(int(code)),
        "hang": _hang,
        "hang-with-child": _hang_with_child,
        "memory": _memory,
        "kill-parent": _kill_parent,
        "kill-parent-and-end": lambda: os._exit(len(_kill_parent())),
    }
    told = actions[words[0]](*words[1:])
    target = run.target
    report = TargetReport(target.file, target.name, target.line, run.device, run.rung, Status.COMPILED, message=told)
    link.send(RunDone(run.run_id, report))


def _mark() -> str:
    shown = Path("/proc/self/environ").read_bytes().split(b"\0")
    return " ".join(
        (
            next(entry.decode() for entry in shown if entry.startswith(b"INDUCTOSCOPE_WORKER=")),
            f"INDUCTOSCOPE_WORKER={os.environ['INDUCTOSCOPE_WORKER']}",
        )
    )


def _descriptors() -> Iterator[str]:
    """What kind of thing each open descriptor is."""
    for link in list(Path("/proc/self/fd").iterdir()):
        try:
            what = str(link.readlink())
        except FileNotFoundError:  # the one that listed the folder
            continue
        yield "null" if what == os.devnull else what.partition(":")[0]


def _daemon(file: str) -> str:
    """Leave behind a process of the same program, in a session of its own, whose parent has ended."""
    parent = os.fork()
    if parent == 0:
        os.setsid()
        daemon = os.fork()
        if daemon == 0:
            _hang()
        Path(file).write_text(str(daemon))
        os._exit(0)
    os.waitpid(parent, 0)
    return file


def _hang(*_: str) -> str:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        time.sleep(3600)


def _hang_with_child(file: str) -> str:
    child = os.fork()
    if child == 0:
        _hang()
    Path(file).write_text(f"{os.getpid()} {child}")
    return _hang()


@functools.cache
def _memory(mib: str) -> str:
    held = b"x" * (int(mib) << 20)
    return _hang(str(len(held)))


def _kill_parent() -> str:
    parent = os.getppid()
    os.kill(parent, signal.SIGKILL)
    while os.getppid() == parent:
        time.sleep(0)
    return "killed"


if __name__ == "__main__":
    main()
