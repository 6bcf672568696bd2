"""A trace as it grows: breaks, recompiles, limits, skipped functions, graphs and caches as they happen, one line each.

The operating system says that something changed (watchdog); what changed is found by reading on.  New files in the
folder are taken in as they appear.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inductoscope.server.text.view import View
from inductoscope.server.traces import codes, reading
from inductoscope.server.traces.break_records import breaks_of
from inductoscope.server.traces.codes import Sources
from inductoscope.server.traces.compilations import Compilation
from inductoscope.server.traces.findings import guard_text
from inductoscope.server.traces.places import Places
from inductoscope.server.traces.process import Process
from inductoscope.server.traces.reading import Source
from inductoscope.server.traces.reports import failures
from inductoscope.server.traces.views import facts

if TYPE_CHECKING:
    from watchdog.events import FileSystemEvent

LOOK_S = 1.0
"""Seconds after which files are looked at though nothing was heard: network folders tell no changes."""


class Growing:
    """The files of a path, read on whenever somebody asks."""

    def __init__(self, path: Path, ours: Callable[[Path], bool] = lambda _: True) -> None:
        self._path = path
        self._ours = ours
        self._sources: dict[Path, Source] = {}
        self._told: dict[int, _Told] = {}

    @property
    def sources(self) -> tuple[Source, ...]:
        """The files so far."""
        return tuple(self._sources.values())

    def read(self) -> None:
        """Take in what is new."""
        for path in self._files():
            source = self._sources.setdefault(path, Source(path))
            source.read()

    def end(self) -> None:
        """Take in what is left: nothing more is coming."""
        self.read()
        for source in self.sources:
            source.end()

    def news(self, view: View, places: Places) -> Iterator[str]:
        """A line for each thing that was not told yet."""
        processes = [process for source in self.sources for process in source.processes.values()]
        several = len(processes) > 1
        for process in processes:
            told = self._told.setdefault(id(process), _Told())
            for line in told.news(process, view, places):
                yield f"[{process.label}] {line}" if several else line

    def _files(self) -> tuple[Path, ...]:
        try:
            found = reading.files(self._path)
        except reading.TraceError:  # nothing there yet
            return tuple(self._sources)
        return tuple(path for path in found if path in self._sources or self._ours(path))


class _Told:
    """What was told of one process."""

    def __init__(self) -> None:
        self._breaks: dict[int, int] = {}
        self._reasons: set[int] = set()
        self._done: set[int] = set()
        self._limits = 0
        self._skipped = 0

    def news(self, process: Process, view: View, places: Places) -> Iterator[str]:
        for one in process.compilations:
            if one.id == "-" or one.order in self._done:
                continue
            yield from self._compilation(one, process, view, places)
        for fields in process.skipped[self._skipped :]:
            yield f"not compiled  {fields.get('function')} ({fields.get('file')}): {fields.get('reason')}"
        self._skipped = len(process.skipped)
        for fields in process.limits[self._limits :]:
            function, limit = fields.get("function"), fields.get("limit")
            yield f"gave up       {function}: the limit of {limit} versions was reached; it runs uncompiled from now on"
        self._limits = len(process.limits)

    def _compilation(self, one: Compilation, process: Process, view: View, places: Places) -> Iterator[str]:
        if one.reasons is not None and one.order not in self._reasons:
            self._reasons.add(one.order)
            for guard in tuple(failures(one, places))[:1]:
                made = f" (made at {view.place(guard.file, guard.line)})" if guard.file and guard.line else ""
                yield f"recompile     {one.id}: {guard_text(guard)}{made}"
        new = one.breaks[self._breaks.get(one.order, 0) :]
        if new:
            self._breaks[one.order] = len(one.breaks)
            for found in breaks_of([one], places):
                yield f"graph break   {view.place(found.file, found.line)}: {found.reason} {found.code}".rstrip()
        if one.metrics:
            self._done.add(one.order)
            yield _finished(one, process, view, places)


def _finished(one: Compilation, process: Process, view: View, places: Places) -> str:
    told = facts(one, process, places)
    parts = [f"{told.ms:.0f} ms", told.result]
    if told.ops is not None:
        parts.append(f"{told.ops} ops")
    kernels = sum(1 for _ in codes.kernels(one, places, Sources.LEFT_OUT))
    if kernels:
        parts.append(f"{kernels} kernels")
    parts += dict.fromkeys(f"{event.cache} {event.result}" for event in one.caches)
    name = f"rest of {told.function}" if told.resumed else told.function
    return f"compiled      {told.id} {name} ({view.place(told.file, told.line)}): {', '.join(parts)}"


class Changes:
    """Waits for changes below a folder."""

    def __init__(self, folder: Path) -> None:
        self._changed = threading.Event()
        self._observer = _observer(self, folder)

    def dispatch(self, event: FileSystemEvent) -> None:
        """Take an event of watchdog's, on whatever thread."""
        if event.event_type in ("created", "modified", "moved", "closed"):
            self.notice()

    def notice(self) -> None:
        """Something changed; to be called on whatever thread."""
        self._changed.set()

    def wait(self, seconds: float = LOOK_S) -> None:
        """Return when something changed, or after `seconds`."""
        self._changed.wait(seconds)
        self._changed.clear()

    def close(self) -> None:
        """Watch no more."""
        if self._observer is not None:
            self._observer.stop()
            self._observer.join()


def _observer(changes: Changes, folder: Path) -> Any:
    from watchdog.observers import Observer

    observer: Any = Observer()  # its class depends on the platform
    try:
        observer.schedule(changes, str(folder), recursive=True)
        observer.start()
    except OSError:  # no more watches: looking now and then is enough
        return None
    return observer


def follow(path: Path) -> int:
    """Print what happens until the user interrupts; returns the exit status."""
    from inductoscope.server.text.terminal import source_line

    if not path.exists():
        raise reading.TraceError(f"{path} does not exist.")
    growing, places = Growing(path), Places(Path.cwd())
    view = View(frozenset(), Path.cwd(), source_line)
    changes = Changes(path if path.is_dir() else path.parent)
    try:
        while True:
            growing.read()
            for line in growing.news(view, places):
                sys.stdout.write(f"{line}\n")
            sys.stdout.flush()
            changes.wait()
    except KeyboardInterrupt:
        return 0
    finally:
        changes.close()
