"""From paths to processes: which files are traces, and what each process told in them.

Reads in bounded memory: of a record that nobody reads later only its count is kept, of a payload only where it lies.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from inductoscope.server.traces import kinds
from inductoscope.server.traces.lines import Line, Scanner
from inductoscope.server.traces.process import Process
from inductoscope.server.traces.records import RecordError, kind_of, read

logger = logging.getLogger(__name__)

MOST_FILES = 4096
"""Files of a folder that are read; a folder of traces has one for each process."""

_PEEK = 1 << 16
_PACKED = {
    b"\x1f\x8b": "gzip",
    b"\xfd7zXZ\x00": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"PK\x03\x04": "zip",
    b"BZh": "bzip2",
}
_SUFFIXES = (".log", ".txt", ".out", ".err", "")


class TraceError(Exception):
    """There is nothing to read; the message is a sentence that says why and what helps."""


@dataclass
class Source:
    """One file, and the processes that were found in it.  Reads on where it stopped."""

    path: Path
    scanner: Scanner = field(default_factory=Scanner)
    processes: dict[int, Process] = field(default_factory=dict)
    problem: str | None = None

    def read(self) -> bool:
        """Take in what the file has by now; returns whether there was anything new."""
        before = self.scanner.position
        try:
            size = self.path.stat().st_size
            if size < before:
                self._begin_anew()
            with self.path.open("rb") as file:
                for line in self.scanner.read(file):
                    self._take(line)
        except OSError as error:
            self.problem = f"{self.path} cannot be read: {error.strerror or error}."
        return self.scanner.position != before

    def end(self) -> None:
        """Take in the last record, too: nothing more is coming."""
        for line in self.scanner.rest():
            self._take(line)

    def _begin_anew(self) -> None:
        self.problem = f"{self.path} became shorter while it was read, so it was read again from its beginning."
        self.scanner, self.processes = Scanner(), {}

    def _take(self, line: Line) -> None:
        process = self.processes.get(line.process)
        if process is None:
            process = self.processes[line.process] = Process(self.path, line.process, first=line.clock, date=line.date)
        process.last = line.clock
        kind, name = kind_of(line)
        if kind == "chromium_event":  # the most frequent one: its envelope says nothing
            process.records[kind] += 1
            process.events.add(line.payload)
        elif not kind or kinds.handler(kind, name) is not None:
            self._handle(process, line)
        else:
            _count(process, kind)

    def _handle(self, process: Process, line: Line) -> None:
        try:
            record = read(line, self.path)
        except RecordError:
            process.damaged += 1
            return
        _count(process, record.kind)
        process.rank = record.rank if process.rank is None else process.rank
        if record.compile_id is None and record.kind != "str":
            process.loose[record.name or record.kind] += 1
        handler = kinds.handler(record.kind, record.name)
        if handler is None:
            return
        try:
            handler(process, record)
        except Exception as error:  # what a record holds is torch's business, in every version another
            process.damaged += 1
            logger.warning("record kind=%s name=%s cannot be used: %r", record.kind, record.name, error)


def _count(process: Process, kind: str) -> None:
    process.records[kind] += 1
    if not kinds.is_known(kind):
        process.unknown[kind] += 1


def files(path: Path) -> tuple[Path, ...]:
    """The files that a path names: itself, or those of a folder that have records.  Raises `TraceError`."""
    try:
        if path.is_dir():
            found = tuple(sorted(one for one in _below(path) if has_records(one)))
            if not found:
                raise TraceError(
                    f"No trace was found in {path}. A trace is what a program writes that is started with TORCH_TRACE="
                    "FOLDER; `inductoscope run -- python program.py` records one, too."
                )
            return found
        if not path.exists():
            raise TraceError(f"{path} does not exist.")
        if not path.is_file():
            raise TraceError(f"{path} is neither a file nor a folder; write what comes from it into a file first.")
        with path.open("rb") as file:
            start = file.read(6)
        if packed := next((name for magic, name in _PACKED.items() if start.startswith(magic)), None):
            raise TraceError(f"{path} is compressed with {packed}; unpack it first.")
        return (path,)
    except OSError as error:
        raise TraceError(f"{path} cannot be read: {error.strerror or error}.") from None


def _below(folder: Path) -> Iterator[Path]:
    seen = 0
    for place, folders, names in os.walk(folder, onerror=_raise):
        folders.sort()
        for name in sorted(names):
            if Path(name).suffix.lower() in _SUFFIXES:
                seen += 1
                if seen > MOST_FILES:
                    raise TraceError(
                        f"{folder} has more than {MOST_FILES} files that might be traces. Name the folder that "
                        "TORCH_TRACE was set to, or one file of it."
                    )
                yield Path(place, name)


def _raise(error: OSError) -> None:
    if isinstance(error, PermissionError):
        raise error


def has_records(path: Path) -> bool:
    """Whether a file begins like one with records."""
    try:
        if not path.is_file():  # to open a pipe may take for ever
            return False
        with path.open("rb") as file:
            start = file.read(_PEEK)
    except OSError as error:
        logger.warning("cannot read file=%s error=%s", path, error)
        return False
    return any(True for _ in _lines(start))


def _lines(start: bytes) -> Iterable[Line]:
    import io

    scanner = Scanner()
    yield from scanner.read(io.BytesIO(start))
    yield from scanner.rest()


def read_files(paths: Iterable[Path]) -> tuple[Source, ...]:
    """Read files to their end."""
    sources = tuple(Source(path) for path in paths)
    for source in sources:
        source.read()
        source.end()
    return sources


def problems(sources: Iterable[Source]) -> Iterator[str]:
    """What is wrong with what was read, in sentences."""
    for source in sources:
        damaged = sum(one.damaged for one in source.processes.values())
        if source.problem is not None:
            yield source.problem
        elif not source.processes:
            yield (
                f"{source.path} has no records of torch.compile. Set TORCH_TRACE=FOLDER for the program, and read that "
                "folder."
            )
        if damaged:
            yield f"{source.path}: {damaged} records are damaged or cut off and were left out."
        if source.scanner.overlong:
            yield f"{source.path}: {source.scanner.overlong} overlong lines are no part of a trace and were left out."
