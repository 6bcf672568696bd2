"""The command line of a worker on another machine: that of the relay to it.  Knows nothing of what is relayed."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from inductoscope.server.config import Config
from inductoscope.server.workers.command import WorkerCommand

PYTHON = "python3"
"""The interpreter of another machine where nobody names one."""

_PLAIN = re.compile(r"[A-Za-z0-9_./+=:@%-]+")
_START = (
    "import json,sys;given=json.loads(sys.argv[1]);sys.path[:]=given['path'];"
    "from inductoscope.server.remote.relay import main;main(given,sys.argv[2:])"
)


class RunnerError(ValueError):
    """A runner that cannot be used; the message is a sentence."""


def elsewhere(settings: Config, cwd: str | None) -> WorkerCommand | None:
    """Command lines of workers on the machine that a project measures on; None where that is this one.

    Raises `RunnerError`.
    """
    if not settings.runner:
        return None
    folder = cwd or str(Path.cwd())
    return remote_command(settings.runner, settings.runner_python or PYTHON, (folder, *settings.paths), folder)


def remote_command(runner: Sequence[str], python: str, roots: Sequence[str], cwd: str) -> WorkerCommand:
    """Command lines of workers that `runner` starts with the interpreter `python` of the other machine.

    `roots` are folders that absolute imports of programs are looked up in, `cwd` the working folder.  Some runners give
    words to a shell on the other side and some do not, so `python` has to mean the same to both.  Raises `RunnerError`.
    """
    if not runner:
        raise RunnerError("The runner is empty; name a command such as ssh gpu-box.")
    if not _PLAIN.fullmatch(python):
        raise RunnerError(
            f"The interpreter {python!r} of the other machine has characters in it that a shell there may read "
            "otherwise; give it a plain path, by a link if need be."
        )
    given = {"path": sys.path, "runner": list(runner), "python": python, "roots": list(roots), "cwd": cwd}
    text = json.dumps(given)

    def command(read_fd: int, write_fd: int) -> list[str]:
        return [sys.executable, "-c", _START, text, str(read_fd), str(write_fd)]

    return command
