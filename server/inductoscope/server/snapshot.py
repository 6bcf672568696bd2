"""An immutable view of everything the session knows, for features to be functions of.

Lines of a result are those of the text that was compiled; lines of a document are those of the text on screen.
`Snapshot` converts between the two, so that no feature has to know how old a result is.  Knows no LSP types.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from inductoscope.protocol.messages import Failure, Target
from inductoscope.protocol.report import Benchmark, Finding, Related, TargetReport
from inductoscope.server.documents import Documents
from inductoscope.server.positions import Text
from inductoscope.server.settings import Settings, Trust
from inductoscope.server.shift import Shift
from inductoscope.server.targets import Scan, ScannedTarget


class Activity(enum.Enum):
    """What is going on with a target now."""

    IDLE = "idle"
    WAITING = "waiting"
    CHECKING = "checking"
    MEASURING = "measuring"


@dataclass(frozen=True)
class Result:
    """What one run found, and which texts it was about.

    `files` are those of the program; `texts` those of the ones that were open when it started or that the report speaks
    of, by path; `version` is that of the target's own document; `at` is the clock's time of the answer, in
    seconds; `fingerprint` names the program that was run; `cause` says in a few words why it was.
    """

    report: TargetReport
    generation: int
    version: int
    texts: Mapping[str, Text]
    at: float
    fingerprint: str = ""
    cause: str = ""
    files: frozenset[str] = frozenset()

    def with_text(self, path: str, text: Text) -> Result:
        """Knowing what a file held that was not open when it was run; a text that is known already stands."""
        return self if path in self.texts else replace(self, texts={**self.texts, path: text})


@dataclass(frozen=True)
class Measurement:
    """The last run that was to measure; `failure` says why there is no benchmark in its report."""

    result: Result
    failure: Failure | None = None

    @property
    def benchmark(self) -> Benchmark | None:
        """What was measured."""
        return self.result.report.benchmark


@dataclass(frozen=True)
class TargetView:
    """A target and all that is known of it.

    `good` is the last run that came through, and stays until the next one does; `before` is the one that came through
    before it; `failed` is a later run that did not; `current` is what a run that is still going has found so far.
    `cause` says why it is run now, or was last; `took_s` is how many seconds the last run took; `retry` names a program
    that is to be run again although it failed; `crashes` counts the last runs in a row that took their worker down, and
    `rests_until` says until when nothing but a person's wish starts another (see `resting`).
    """

    scanned: ScannedTarget
    activity: Activity = Activity.IDLE
    doing: str | None = None
    good: Result | None = None
    before: Result | None = None
    failed: Result | None = None
    current: Result | None = None
    failure: Failure | None = None
    measured: Measurement | None = None
    cause: str = ""
    took_s: float = 0.0
    retry: str = ""
    crashes: int = 0
    rests_until: float = 0.0

    @property
    def target(self) -> Target:
        """The target as found by the last scan that could read the file."""
        return self.scanned.target

    def with_text(self, path: str, text: Text) -> TargetView:
        """With that text in each result that does not know it; see `Result.with_text`."""
        good, failed, current = (
            result and result.with_text(path, text) for result in (self.good, self.failed, self.current)
        )
        return replace(self, good=good, failed=failed, current=current)

    @property
    def results(self) -> tuple[Result, ...]:
        """The results to look facts up in, the newest first."""
        return tuple(result for result in (self.current, self.failed, self.good) if result is not None)

    @property
    def settled(self) -> Result | None:
        """The last run that ended, however it did."""
        return self.failed or self.good


@dataclass(frozen=True)
class FileView:
    """An open file.  `parsed` and `parsed_text` are the last scan that could read the text, and that text."""

    scan: Scan
    parsed: Scan
    parsed_text: Text


@dataclass(frozen=True)
class Environment:
    """What a worker has said about itself, and what is wrong with it."""

    interpreter: str | None = None
    python: str | None = None
    torch: str | None = None
    triton: str | None = None
    problem: str | None = None
    warning: str | None = None


@dataclass(frozen=True)
class Snapshot:
    """Everything at one moment; `now` is the clock's time in seconds, `closed` gives the text of a file not open."""

    documents: Documents
    files: Mapping[str, FileView]
    targets: Mapping[str, TargetView]
    settings_of: Callable[[str], Settings] = field(repr=False)
    shift: Callable[[Text, Text], Shift] = field(repr=False)
    trust: Trust = Trust.TRUSTED
    environment: Environment = Environment()
    now: float = 0.0
    closed: Callable[[str], Text | None] = field(default=lambda path: None, repr=False)

    def text_now(self, path: str) -> Text | None:
        """The text of a file, unsaved text included; None when there is no such file."""
        document = self.documents.get(path)
        return self.closed(path) if document is None else document.text

    def targets_in(self, path: str) -> Iterator[TargetView]:
        """The targets defined in an open file, in the order of the file."""
        file = self.files.get(path)
        for scanned in file.parsed.targets if file else ():
            view = self.targets.get(scanned.target.key)
            if view is not None:
                yield view

    def find(self, path: str, name: str) -> TargetView | None:
        """The target of that name."""
        return next((view for view in self.targets_in(path) if view.target.name == name), None)

    def line_of(self, view: TargetView) -> int | None:
        """Where a target's definition is on screen, or None when that line was edited since it was last read."""
        path = view.target.file
        document, file = self.documents.get(path), self.files.get(path)
        if document is None or file is None:
            return view.target.line
        return self.shift(file.parsed_text, document.text).forward(view.target.line)

    def now_at(self, result: Result, path: str, line: int) -> int | None:
        """Where a line of a result is on screen, or None when it was edited since."""
        move = self._move(result, path)
        return line if move is None else move.forward(line)

    def then_at(self, result: Result, path: str, line: int) -> int | None:
        """The line of a result that `line` on screen was, or None when it is new."""
        move = self._move(result, path)
        return line if move is None else move.back(line)

    def is_stale(self, result: Result) -> bool:
        """Whether a text of the program has changed since."""
        own = ((path, then) for path, then in result.texts.items() if path in result.files)
        return any(text != then for path, then in own if (text := self.text_now(path)) is not None)

    def moved(self, result: Result, finding: Finding) -> Finding | None:
        """The finding with the lines of the screen, or None when a line of it was edited."""
        move = self._move(result, finding.file)
        if move is not None:
            last = max(finding.line, finding.end_line)
            if not move.keeps(finding.line, last):
                return None
            by = (move.forward(finding.line) or finding.line) - finding.line
            finding = replace(finding, line=finding.line + by, end_line=last + by)
        return replace(finding, related=tuple(self._moved_related(result, item) for item in finding.related))

    def _moved_related(self, result: Result, item: Related) -> Related:
        move = self._move(result, item.file)
        return item if move is None else replace(item, line=move.near(item.line))

    def _move(self, result: Result, path: str) -> Shift | None:
        then = result.texts.get(path)
        now = self.text_now(path) if then is not None else None
        return None if then is None or now is None or now == then else self.shift(then, now)
