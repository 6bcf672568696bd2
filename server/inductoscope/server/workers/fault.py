"""Where Python's fault handler says that a process was.

Reads what `-X faulthandler` prints on a fatal signal and what SIGUSR2 makes a worker print.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from inductoscope.protocol.report import Place
from inductoscope.server.workers.command import namespace_parts

_THREAD = re.compile(r"^(Current thread|Thread) 0x[0-9a-f]+.*\(most recent call first\):$")
_FRAME = re.compile(r'^  File "(?P<file>.+)", line (?P<line>\d+) in (?P<function>.+)$')
_DUMP = re.compile(rf"{_THREAD.pattern}|{_FRAME.pattern}|^Fatal Python error: |^Extension modules: ")
_LIBRARY = re.compile(r"/(site|dist)-packages/|/lib(64)?/python3(\.\d+)?/")


def user_place(output: Sequence[str]) -> Place | None:
    """The innermost line of user code in the last dump of the thread that the signal hit; None without one."""
    headers = [i for i, line in enumerate(output) if _current(line)]
    if not headers:
        return None
    for line in output[headers[-1] + 1 :]:
        frame = _FRAME.match(line)
        if frame is None:
            return None
        if _is_user(frame["file"]):
            return Place(frame["file"], int(frame["line"]), frame["function"])
    return None


def without_dumps(output: Sequence[str]) -> list[str]:
    """The output less the fault handler's lines: what the program itself said."""
    return [line for line in output if not _DUMP.match(line)]


def _current(line: str) -> bool:
    match = _THREAD.match(line)
    return match is not None and match[1] == "Current thread"


def _is_user(file: str) -> bool:
    return not (file.startswith(("<", *namespace_parts())) or _LIBRARY.search(file))
