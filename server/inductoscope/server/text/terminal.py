"""What a person at a terminal sees of a check: targets as they finish, what is going on, and a last line.

Results go to standard output, the moving status line to standard error and only where that is a terminal.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console, RenderableType
from rich.status import Status as StatusLine
from rich.text import Text

from inductoscope.protocol.messages import Message, Progress, Target
from inductoscope.protocol.own_devices import OwnDevice
from inductoscope.protocol.report import Report, Status, TargetReport
from inductoscope.server import sources, words
from inductoscope.server.check import Watcher
from inductoscope.server.difference import Difference
from inductoscope.server.text import advice, changes, devices, guards
from inductoscope.server.text import report as text_of
from inductoscope.server.text.view import Part, View

_PLAIN_WIDTH = 120
"""Columns when the output is no terminal and the environment does not say."""


def console() -> Console:
    """A console on standard output: coloured on a terminal, plain elsewhere or under NO_COLOR."""
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # a text stream of the interpreter
    return _plain(Console(markup=False, highlight=False, emoji=False))


def error_console() -> Console:
    """The same on standard error, where standard output is another program's."""
    return _plain(Console(stderr=True, markup=False, highlight=False, emoji=False))


def _plain(plain: Console) -> Console:
    if not plain.is_terminal and "COLUMNS" not in os.environ:
        plain.width = _PLAIN_WIDTH
    return plain


def write(to: Console, content: RenderableType) -> None:
    """Print, uncropped; where nobody looks at columns without the blanks that fill them up."""
    if to.is_terminal:
        to.print(content, crop=False)
        return
    with to.capture() as capture:
        to.print(content, crop=False)
    sys.stdout.write("".join(f"{line.rstrip()}\n" for line in capture.get().splitlines()))
    sys.stdout.flush()


class Terminal:
    """Prints a check while it goes on."""

    def __init__(self, shown: frozenset[Part], kernel: str | None = None) -> None:
        self._console = console()
        self._view = View(shown, Path.cwd(), source_line, kernel)
        self._status: StatusLine | None = None
        self.watcher = Watcher(self.whole, self._on_event)

    def end(self, report: Report) -> None:
        """Print what sums up the whole."""
        if report.torch is None:
            self._stop()
            return
        parts = [f"torch {report.torch}", f"Python {report.python}"]
        if report.triton is not None:
            parts.insert(1, f"triton {report.triton}")
        if any(target.device.startswith("sim:") for target in report.targets):
            parts.append("simulated devices: nothing was measured, times are predicted")
        summary = f"{summed(report)}  ({', '.join(parts)})" if len(report.targets) != 1 else ", ".join(parts)
        self._write(Text(summary, "dim"))
        step = advice.next_step(report, self._view)
        if step is not None:
            self._write(Text(step))

    def whole(self, report: TargetReport) -> None:
        """Print all about a target; see also `watch.Screen`."""
        _lines.cache_clear()  # the files may have changed since the last one
        self._write(text_of.target(report, self._view))

    def differs(self, found: Difference) -> None:
        """See `watch.Screen`."""
        self._write(changes.difference(found, self._view))

    def changed(self, paths: tuple[str, ...], targets: tuple[Target, ...]) -> None:
        """See `watch.Screen`."""
        self._write(changes.changed(paths, targets, self._view.folder))

    def gone(self, target: Target) -> None:
        """See `watch.Screen`."""
        self._write(Text(f"{target.name} is gone"))

    def problem(self, sentence: str) -> None:
        """See `watch.Screen`."""
        self._stop()
        sys.stderr.write(f"inductoscope: {sentence}\n")

    def waiting(self, files: int) -> None:
        """See `watch.Screen`."""
        self._write(Text(f"watching {words.count(files, 'file')} for changes; Ctrl-C ends", "dim"))

    def _write(self, content: RenderableType) -> None:
        self._stop()
        write(self._console, content)

    def _on_event(self, target: Target, message: Message) -> None:
        if not isinstance(message, Progress) or not sys.stderr.isatty():
            return
        text = f"{target.name}: {message.text}"
        if self._status is None:
            self._status = Console(stderr=True, markup=False).status(text)
            self._status.start()
        self._status.update(text)

    def _stop(self) -> None:
        if self._status is not None:
            self._status.stop()
            self._status = None


def summed(report: Report) -> str:
    """`3 targets: 2 compiled, 1 partial; 4 findings`."""
    counts = {status: sum(target.status is status for target in report.targets) for status in Status}
    states = ", ".join(f"{count} {status.value}" for status, count in counts.items() if count)
    findings = sum(len(target.findings) for target in report.targets)
    return f"{words.count(len(report.targets), 'target')}: {states}; {words.count(findings, 'finding')}"


def print_guards(report: Report, shown: frozenset[Part], wanted: guards.Selection) -> None:
    """The guards of every target that are wanted."""
    view = View(shown, Path.cwd(), source_line)
    for target in report.targets:
        write(console(), guards.target(target, view, wanted))


def print_devices(shown: Sequence[OwnDevice]) -> None:
    """The devices that `--device` takes, and every figure of `shown`."""
    write(console(), devices.overview(shown))


def source_line(file: str, line: int) -> str:
    """A line of a file as it is on disk; empty where there is none."""
    lines = _lines(file)
    return lines[line - 1] if 1 <= line <= len(lines) else ""


@functools.lru_cache(maxsize=64)
def _lines(file: str) -> tuple[str, ...]:
    from inductoscope.server.positions import Text as SourceText

    try:
        return SourceText(sources.read_text(Path(file))).lines
    except sources.SourceError:
        return ()
