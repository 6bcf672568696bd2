"""The history of benchmarks of a workspace: an SQLite file in the user's cache.

One row a benchmark, with the whole result as JSON and the columns that results are looked up by.  A history that cannot
be read or written costs the history and nothing else: everything here raises `HistoryError`, a sentence.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path

import platformdirs

from inductoscope.protocol import codec
from inductoscope.protocol.report import Benchmark, TargetReport

_VERSION = 1
_WAIT_S = 10.0
_KEPT = 1000
"""Results of one series; the oldest go first."""

_TABLE = """
CREATE TABLE IF NOT EXISTS benchmarks (
    id INTEGER PRIMARY KEY,
    taken TEXT NOT NULL,
    file TEXT NOT NULL,
    target TEXT NOT NULL,
    series TEXT NOT NULL,
    revision TEXT,
    torch TEXT,
    result TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS by_series ON benchmarks (series, id);
CREATE INDEX IF NOT EXISTS by_target ON benchmarks (file, target, id);
"""


class HistoryError(Exception):
    """The history cannot be used; the message is a sentence."""


@dataclass(frozen=True)
class Entry:
    """A result of the past: when (ISO 8601, UTC), of what, with which torch, at which revision where that is known.

    `file` is relative to the workspace.
    """

    taken: str
    file: str
    target: str
    benchmark: Benchmark
    revision: str | None = None
    torch: str | None = None


@dataclass(frozen=True)
class History:
    """The history in the file `path` of the workspace folder `root`."""

    path: Path
    root: Path

    def add(self, report: TargetReport, revision: str | None, torch: str | None) -> None:
        """Keep what a report says that was measured; what was refused is no result."""
        taken = datetime.now(timezone.utc).isoformat(timespec="seconds")
        with self._open() as connection:
            for benchmark in _measured(report):
                file, series = self._relative(report.file), self._series(report, benchmark)
                text = json.dumps(codec.to_json(replace(benchmark, change=None)))
                row = (taken, file, report.name, series, revision, torch, text)
                connection.execute(
                    "INSERT INTO benchmarks (taken, file, target, series, revision, torch, result)"
                    " VALUES (?, ?, ?, ?, ?, ?, ?)",
                    row,
                )
                connection.execute(
                    "DELETE FROM benchmarks WHERE series = ? AND id NOT IN"
                    " (SELECT id FROM benchmarks WHERE series = ? ORDER BY id DESC LIMIT ?)",
                    (series, series, _KEPT),
                )

    def last(self, report: TargetReport, benchmark: Benchmark) -> Entry | None:
        """The newest earlier result that `benchmark` can be compared with: same target, place, mode, passes, inputs."""
        query = f"{_SELECT} WHERE series = ? ORDER BY id DESC LIMIT 1"
        return next(iter(self._entries(query, (self._series(report, benchmark),))), None)

    def of(self, file: Path, target: str | None = None) -> tuple[Entry, ...]:
        """All results of a file, or of one of its targets, the oldest first."""
        if target is None:
            return self._entries(f"{_SELECT} WHERE file = ? ORDER BY id", (self._relative(str(file)),))
        values = (self._relative(str(file)), target)
        return self._entries(f"{_SELECT} WHERE file = ? AND target = ? ORDER BY id", values)

    def _entries(self, query: str, values: tuple[str, ...]) -> tuple[Entry, ...]:
        if not self.path.is_file():
            return ()
        with self._open() as connection:
            rows = connection.execute(query, values).fetchall()
        return tuple(entry for entry in map(_entry, rows) if entry is not None)

    @contextlib.contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with contextlib.closing(sqlite3.connect(self.path, timeout=_WAIT_S)) as connection, connection:
                (version,) = connection.execute("PRAGMA user_version").fetchone()
                if version > _VERSION:
                    raise HistoryError(
                        f"The history {self.path} was written by a newer Inductoscope; update this one, or delete it."
                    )
                connection.executescript(f"{_TABLE} PRAGMA user_version = {_VERSION};")
                yield connection
        except (OSError, sqlite3.Error) as error:
            raise HistoryError(
                f"The history {self.path} cannot be used ({error}). If it is damaged, delete the file."
            ) from None

    def _relative(self, file: str) -> str:
        path = Path(file)
        return path.relative_to(self.root).as_posix() if path.is_relative_to(self.root) else path.as_posix()

    def _series(self, report: TargetReport, benchmark: Benchmark) -> str:
        """Results with the same text here can be compared."""
        parts = (
            self._relative(report.file),
            report.name,
            benchmark.where,
            benchmark.mode or "",
            benchmark.passes.value,
            *benchmark.inputs,
        )
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()


_SELECT = "SELECT taken, file, target, revision, torch, result FROM benchmarks"


def of_workspace(file: Path) -> History:
    """The history of the workspace that `file` is in: the nearest folder above with a `pyproject.toml` or `.git`."""
    marked = (parent for parent in file.parents if any((parent / name).exists() for name in ("pyproject.toml", ".git")))
    root = next(marked, file.parent)
    name = f"{root.name}-{hashlib.sha256(str(root).encode()).hexdigest()[:16]}"
    folder = Path(platformdirs.user_cache_dir("inductoscope")) / "workspaces" / name
    return History(folder / "benchmarks.sqlite", root)


def _measured(report: TargetReport) -> Iterator[Benchmark]:
    first = (report.benchmark,) if report.benchmark is not None else ()
    return (one for one in (*first, *report.benchmarks) if one.compiled is not None and one.refused is None)


def _entry(row: tuple[str, str, str, str | None, str | None, str]) -> Entry | None:
    """None for a result that this version cannot read."""
    taken, file, target, revision, torch, text = row
    try:
        benchmark: Benchmark = codec.from_json(Benchmark, json.loads(text))
    except (codec.CodecError, ValueError):
        return None
    return Entry(taken, file, target, benchmark, revision, torch)
