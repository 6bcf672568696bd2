"""`inductoscope run [--] COMMAND`: run a program unchanged, and say afterwards what torch.compile did in it.

The program gets standard input, output and error, arguments, signals and exit status as if it had been started by
itself; a recorder in it (`compiler/recorder`) writes records to a folder, which is read as a trace.  Nothing is written
to standard output here.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from inductoscope.server.traces.sections import Section, SectionError, sections

if TYPE_CHECKING:
    from inductoscope.server.traces.following import Growing
    from inductoscope.server.traces.run import TraceReport

FOLDER_VARIABLE = "INDUCTOSCOPE_RECORD"
"""Environment variable with the folder of the records; the recorder's own `FOLDER_VARIABLE`."""

KEPT_RUNS = 20
"""Recordings that are kept, the latest ones, where no folder is named."""

NOT_FOUND, NOT_RUNNABLE = 127, 126  # as shells say that there is no such program, or that it cannot be run
_PASSED_ON = ("SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2")  # of those that the operating system has
_LEFT_TO_THE_PROGRAM = ("SIGINT", "SIGQUIT")  # a terminal sends them to the program, too


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    parser.add_argument("--folder", type=Path, metavar="FOLDER", help="keep the records here (default: a cache folder)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the whole report into this file as JSON")
    parser.add_argument("--live", action="store_true", help="say on standard error what happens as it happens")
    parser.add_argument("--quiet", action="store_true", help="print no summary at the end")
    parser.add_argument("--show", default="", metavar="LIST", help="more in the summary; see `trace --show`")
    parser.add_argument("program", nargs=argparse.REMAINDER, metavar="COMMAND", help="what to run, such as pytest -x")


def run(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit status of the program."""
    from inductoscope.server.traces import building
    from inductoscope.server.traces.following import Growing
    from inductoscope.server.traces.reports import Asked

    command = arguments.program[1:] if arguments.program[:1] == ["--"] else arguments.program
    if not command:
        _complain("Name the program to run, as in `inductoscope run -- python train.py`.")
        return 2
    try:
        shown = sections(arguments.show)
        folder = _folder(arguments.folder)
    except SectionError as error:
        _complain(str(error))
        return 2
    except OSError as error:
        _complain(
            f"Records cannot be written to {error.filename}: {error.strerror}. Name another folder with --folder."
        )
        return 2
    began = time.time()
    growing = Growing(folder)
    status = _execute(command, folder, growing if arguments.live else None)
    if status in (NOT_FOUND, NOT_RUNNABLE) and not any(folder.iterdir()):
        return status
    growing.end()
    report = building.build(folder, growing.sources, Path.cwd(), Asked())
    _remember(growing, command, began)
    if arguments.json is not None:
        _write_json(arguments.json, report)
    if not arguments.quiet:
        _summary(report, folder, shown)
    return _end(status)


def environment(folder: Path, before: Mapping[str, str]) -> dict[str, str]:
    """The environment of a recorded program: the recorder's folder stands first on PYTHONPATH."""
    site = recorder_folder() / "site"
    path = os.pathsep.join([str(site), *([before["PYTHONPATH"]] if before.get("PYTHONPATH") else [])])
    return {**before, "PYTHONPATH": path, FOLDER_VARIABLE: str(folder.resolve())}


def recorder_folder() -> Path:
    """Where the recorder lies; it is a part of the compiler, which is not imported here."""
    import inductoscope

    for portion in inductoscope.__path__:
        found = Path(portion, "compiler", "recorder")
        if found.is_dir():
            return found
    raise FileNotFoundError("inductoscope.compiler is not installed")


def _folder(named: Path | None) -> Path:
    if named is not None:
        named.mkdir(parents=True, exist_ok=True)
        return named
    import platformdirs

    above = Path(platformdirs.user_cache_dir("inductoscope")) / "recordings"
    folder = above / f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"
    folder.mkdir(parents=True)
    for old in sorted(above.iterdir())[:-KEPT_RUNS]:
        shutil.rmtree(old, ignore_errors=True)
    return folder


def _execute(command: Sequence[str], folder: Path, live: Growing | None) -> int:
    """The status of the program as `subprocess` has it: negative for a signal."""
    try:
        process = subprocess.Popen(list(command), env=environment(folder, os.environ))
    except FileNotFoundError:
        _complain(f"There is no program called {command[0]}.")
        return NOT_FOUND
    except OSError as error:
        _complain(f"{command[0]} cannot be run: {error.strerror}.")
        return NOT_RUNNABLE

    def pass_on(number: int, _: FrameType | None) -> None:
        process.send_signal(number)

    before = {number: signal.signal(number, pass_on) for number in _numbers(_PASSED_ON)}
    before |= {number: signal.signal(number, signal.SIG_IGN) for number in _numbers(_LEFT_TO_THE_PROGRAM)}
    try:
        if live is not None:
            _tell_live(process, folder, live)
        return process.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _numbers(names: Sequence[str]) -> list[signal.Signals]:
    return [signal.Signals[name] for name in names if name in signal.Signals.__members__]


def _tell_live(process: subprocess.Popen[bytes], folder: Path, growing: Growing) -> None:
    from inductoscope.server.text.terminal import source_line
    from inductoscope.server.text.view import View
    from inductoscope.server.traces.following import Changes
    from inductoscope.server.traces.places import Places

    view, places = View(frozenset(), Path.cwd(), source_line), Places(Path.cwd())
    changes = Changes(folder)

    def wait() -> None:
        process.wait()
        changes.notice()

    threading.Thread(target=wait, daemon=True).start()
    try:
        while process.poll() is None:
            changes.wait()
            growing.read()
            for line in growing.news(view, places):
                sys.stderr.write(f"inductoscope: {line}\n")
    finally:
        changes.close()


def _remember(growing: Growing, command: Sequence[str], began: float) -> None:
    from inductoscope.server import recorded_inputs

    processes = [process for source in growing.sources for process in source.processes.values()]
    told = (fields for process in processes for one in process.compilations for fields in one.inputs)
    recorded_inputs.remember(told, " ".join(command), began, recorded_inputs.folder())


def _write_json(path: Path, report: TraceReport) -> None:
    from inductoscope.protocol import codec
    from inductoscope.server.paths import relative_files

    data = relative_files(codec.to_json(report), Path.cwd())
    try:
        path.write_text(json.dumps(data, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    except OSError as error:
        _complain(f"{path} cannot be written: {error.strerror}.")


def _summary(report: TraceReport, folder: Path, shown: frozenset[Section]) -> None:
    """What happened, on standard error: standard output is the program's."""
    from inductoscope.server import words
    from inductoscope.server.text.terminal import error_console, source_line
    from inductoscope.server.text.view import View
    from inductoscope.server.traces import text

    if not report.processes:
        _complain("The program compiled nothing: no function under torch.compile was called, or torch not imported.")
        return
    error_console().print(text.whole(report, View(frozenset(), Path.cwd(), source_line), shown), crop=False)
    for problem in report.problems:
        _complain(problem)
    count = words.count(len(report.processes), "process", "processes")
    _complain(f"{count} recorded; to read it again: inductoscope trace {folder}")


def _end(status: int) -> int:
    """End as the program ended: by the same signal where it was one."""
    if status >= 0:
        return status
    import resource

    number = -status
    sys.stderr.flush()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the core that counts is the program's
    if number != signal.SIGKILL:
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    return 128 + number


def _complain(sentence: str) -> None:
    sys.stderr.write(f"inductoscope: {sentence}\n")
