"""Main of a worker process: say hello, do the one run it is asked for, exit.

It knows the conversation and the process, not what a run consists of.  The program it runs may print, start threads and
processes, exit and crash; none of it may reach the channel, so the process ends by `os._exit` without running what the
program left behind.
"""

from __future__ import annotations

import contextlib
import dataclasses
import faulthandler
import functools
import logging
import os
import platform
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from inductoscope.compiler import scratch
from inductoscope.compiler.compat import versions
from inductoscope.compiler.link import Link
from inductoscope.protocol.messages import PROTOCOL, Failure, FailureKind, Hello, Run, RunFailed
from inductoscope.protocol.scratch import remove

AT_ONCE_S = 0.5
"""A server that needs a worker now asks for the run within milliseconds of its hello; a spare waits for longer."""

logger = logging.getLogger(__name__)


def main(read_fd: int, write_fd: int) -> NoReturn:
    """Serve one run over the two descriptors, or forks over the one, and end the process."""
    folder = own_folder()
    _listen_to_signals()
    if read_fd == write_fd:
        _stay_warm(read_fd, folder)

    def hello() -> Hello:
        return greet() if isinstance(folder, Path) else _hello(folder)

    converse(read_fd, write_fd, folder, hello, import_more)


def converse(
    read_fd: int,
    write_fd: int,
    folder: Path | str,
    greeting: Callable[[], Hello],
    meanwhile: Callable[[Callable[[], bool]], None] | None = None,
) -> NoReturn:
    """Serve one run over the two descriptors and end the process.

    `folder` is that of the process's caches, or why there is none; `meanwhile` is what to do while no run comes, until
    what it is given says that one has come.
    """
    link = Link(read_fd, write_fd, on_gone=functools.partial(_clean_up, folder))
    status = 1
    try:
        hello = greeting()
        link.send(hello)
        run = link.run_within(AT_ONCE_S)
        if run is None and hello.problem is None and meanwhile is not None:
            meanwhile(lambda: link.has_run)
        serve(run or link.wait_for_run(), link)
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        if not link.severed:
            _clean_up(folder)
        _end(status)


def _stay_warm(descriptor: int, folder: Path | str) -> NoReturn:
    """Be a process that runs are forked from, until the server is gone."""
    status = 1
    try:
        from inductoscope.compiler.warm import process

        process.be_first(descriptor, folder, greet, _hello)
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        _clean_up(folder)
        _end(status)


def _listen_to_signals() -> None:
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR2, all_threads=True)  # the server asks this of a run that hangs


def _end(status: int) -> NoReturn:
    with contextlib.suppress(Exception):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(status)


def serve(run: Run, link: Link) -> None:
    """Do `run`; a defect of ours is reported as one."""
    sys.argv[:] = [run.target.file]
    try:
        from inductoscope.compiler import pipeline

        pipeline.run(run, link.send)
    except Exception as error:
        logger.exception("run %d failed in an unforeseen way", run.run_id)
        message = (
            f"Inductoscope failed on {run.target.name} in a way that it did not foresee "
            f"({type(error).__name__}: {error}). This is a defect of Inductoscope; please report it with the log."
        )
        link.send(RunFailed(run.run_id, Failure(FailureKind.INTERNAL, message, details=traceback.format_exc())))


def greet() -> Hello:
    """Import torch and all that a run needs, and say which versions there are or what is wrong."""
    hello = _hello()
    try:
        import torch
    except Exception as error:
        return dataclasses.replace(hello, problem=_without_torch(error))
    hello = dataclasses.replace(hello, torch=torch.__version__, triton=triton_version())
    if versions.too_old(torch.__version__):
        return dataclasses.replace(hello, problem=_too_old(torch.__version__))
    try:
        import_ahead()
    except Exception as error:
        logger.exception("the worker's own modules cannot be imported")
        problem = f"Inductoscope cannot work with torch {torch.__version__} in {sys.executable}: {_said(error)}"
        return dataclasses.replace(hello, problem=problem)
    return dataclasses.replace(hello, warning=versions.newer_than_known(torch.__version__))


def _hello(problem: str | None = None) -> Hello:
    return Hello(PROTOCOL, platform.python_version(), sys.executable, os.getpid(), problem=problem)


def own_folder(use: Callable[[Path], None] = scratch.keep_caches_in) -> Path | str:
    """The folder for this process's caches, for which `use` is called, or why there can be none."""
    try:
        folder = scratch.make()
    except OSError as error:
        return (
            f"no folder for temporary files can be made ({error}). "
            "Free some space, or set TMPDIR to a folder that can be written"
        )
    use(folder)
    return folder


def _clean_up(folder: Path | str) -> None:
    if isinstance(folder, Path):
        remove(folder)


def import_ahead() -> None:
    """Import what every run needs, so that a worker that waits for its run is warm."""
    from inductoscope.compiler.compat import ahead

    ahead.import_compiler()
    import inductoscope.compiler.pipeline  # noqa: F401  (what it imports is the point)


def import_more(wanted: Callable[[], bool]) -> None:
    """Import what a first compilation needs, in a worker that waits for its run anyway, until it is `wanted`."""
    from inductoscope.compiler.compat import ahead

    for _ in ahead.imports_used_later():
        if wanted():
            return


def triton_version() -> str | None:
    """The version of Triton, or None where it cannot be imported."""
    try:
        import triton
    except Exception:
        return None
    return str(triton.__version__)


def _without_torch(error: Exception) -> str:
    if isinstance(error, ModuleNotFoundError) and error.name == "torch":
        return (
            f"{sys.executable} has no torch. Install it there ({sys.executable} -m pip install torch) "
            "or select the interpreter that your program runs in"
        )
    return f"importing torch in {sys.executable} failed: {_said(error)}"


def _too_old(version: str) -> str:
    return (
        f"{sys.executable} has torch {version}; Inductoscope needs {versions.text(versions.OLDEST)} or newer, "
        "so upgrade torch there or select another interpreter"
    )


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
