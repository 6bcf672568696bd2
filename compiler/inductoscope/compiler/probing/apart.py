"""Work in a fork of this process, which is thrown away afterwards: nothing that it changes can be seen here.

The fork has a limit of time, is silent, and may crash.  Knows nothing of torch.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import select
import signal
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar, cast

_T = TypeVar("_T")

_CHUNK = 65536


@dataclass(frozen=True)
class Lost:
    """The work came to no result; `why` says so in words that go on after "it"; `is_late` when it took too long."""

    why: str
    is_late: bool = False


def possible() -> bool:
    """Whether a fork of a process that has threads and libraries in use can go on: on Linux only."""
    return sys.platform == "linux"


def apart(work: Callable[[], _T], seconds: float) -> _T | Lost:
    """What `work` returns, which has to be picklable, when it is done in a fork within `seconds` of wall time."""
    reader, writer = os.pipe()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python 3.12 warns of threads, of which there is one that only reads
            child = os.fork()
    except OSError as error:
        os.close(reader)
        os.close(writer)
        return Lost(f"could not be started ({error.strerror})")
    if child == 0:
        _be_the_child(work, writer, seconds)
    os.close(writer)
    try:
        answer = _read(reader, time.monotonic() + seconds)
    finally:
        os.close(reader)
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
    if answer is None:
        return Lost(f"took more than {seconds:.0f} s", is_late=True)
    if not answer:
        number = os.waitstatus_to_exitcode(status)
        return Lost(f"ended with {signal.Signals(-number).name if number < 0 else f'exit code {number}'}")
    return cast("_T | Lost", pickle.loads(answer))


def _be_the_child(work: Callable[[], object], writer: int, seconds: float) -> None:
    """Do the work, hand over its result, and never return."""
    try:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, seconds)  # should the parent be gone by then
        with Path(os.devnull).open("wb") as nowhere:
            os.dup2(nowhere.fileno(), 1)
            os.dup2(nowhere.fileno(), 2)
        try:
            answer = pickle.dumps(work())
        except BaseException as error:
            answer = pickle.dumps(Lost(f"failed ({type(error).__name__}: {error})"))
        sent = 0
        while sent < len(answer):
            sent += os.write(writer, answer[sent:])
    finally:
        os._exit(0)


def _read(reader: int, deadline: float) -> bytes | None:
    """Everything until the other end is closed, None when that takes too long."""
    parts: list[bytes] = []
    while True:
        ready, _, _ = select.select([reader], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            return None
        part = os.read(reader, _CHUNK)
        if not part:
            return b"".join(parts)
        parts.append(part)
