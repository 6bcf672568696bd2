"""A session with everything around it replaced: a runner that the test answers, a clock that the test moves."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from inductoscope.protocol.messages import Failure, FailureKind, FindingFound, Hello, Message, Progress, RungDone
from inductoscope.protocol.report import Finding, Place, Rung, Severity, Status, TargetReport
from inductoscope.server.diagnostics import Shown
from inductoscope.server.folders import Folders
from inductoscope.server.session import Session
from inductoscope.server.settings import Settings
from inductoscope.server.snapshot import Snapshot
from inductoscope.server.workers.run import OnEvent, RunOutcome, RunRequest
from support.fixture import Fixture, parse

TIMEOUT_S = 10
HELLO = Hello(1, "3.11.7", "/usr/bin/python3", 1, "2.13.0", "3.7.1")


@dataclass
class FakeRun:
    """One run that the session started; the test says what the worker does."""

    request: RunRequest
    on_event: OnEvent
    answer: asyncio.Future[RunOutcome]

    @property
    def name(self) -> str:
        return self.request.target.name

    @property
    def cancelled(self) -> bool:
        return self.answer.cancelled()

    def report(self, *findings: Finding, **changes: Any) -> TargetReport:
        request, target = self.request, self.request.target
        status = changes.pop("status", Status.COMPILED)
        report = TargetReport(target.file, target.name, target.line, request.device, request.rung, status)
        return dataclasses.replace(report, findings=findings, **changes)

    def say(self, message: Message) -> None:
        self.on_event(message)

    def find(self, finding: Finding) -> None:
        self.say(FindingFound(1, finding))

    def rung_done(self, *findings: Finding, **changes: Any) -> None:
        self.say(RungDone(1, Rung.CAPTURE, self.report(*findings, **changes)))

    def progress(self, text: str) -> None:
        self.say(Progress(1, Rung.CAPTURE, text))

    def finish(self, *findings: Finding, files: tuple[str, ...] = (), **changes: Any) -> None:
        """End well; `files` are those that the program imported."""
        self.answer.set_result(RunOutcome(self.report(*findings, **changes), None, HELLO, files))

    def fail(self, kind: FailureKind, message: str) -> None:
        target = self.request.target
        finding = Finding(
            "worker-crash", Severity.ERROR, target.file, target.line, 0, target.line, 0, message, Rung.CAPTURE
        )
        report = self.report(finding, status=Status.FAILED, message=message)
        self.answer.set_result(RunOutcome(report, Failure(kind, message), HELLO))


class FakeRunner:
    """Records runs and leaves their answers to the test."""

    def __init__(self) -> None:
        self.runs: list[FakeRun] = []
        self.closed = 0
        self._new: asyncio.Queue[FakeRun] = asyncio.Queue()

    def interpreter(self, file: str) -> tuple[str, ...] | None:
        return ("/usr/bin/python3",)

    async def run(self, request: RunRequest, on_event: OnEvent) -> RunOutcome:
        run = FakeRun(request, on_event, asyncio.get_running_loop().create_future())
        self.runs.append(run)
        self._new.put_nowait(run)
        return await run.answer

    async def close(self) -> None:
        self.closed += 1

    async def next(self) -> FakeRun:
        """The next run that the session starts."""
        return await asyncio.wait_for(self._new.get(), TIMEOUT_S)

    @property
    def names(self) -> list[str]:
        """The targets of all runs so far, in order."""
        return [run.name for run in self.runs]


@dataclass
class FakeTimer:
    at: float
    callback: Callable[[], object]
    live: bool = True

    def cancel(self) -> None:
        self.live = False


class FakeClock:
    """Time that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 1000.0
        self._timers: list[FakeTimer] = []

    def time(self) -> float:
        return self.now

    def call_later(self, delay: float, callback: Callable[[], object]) -> FakeTimer:
        timer = FakeTimer(self.now + delay, callback)
        self._timers.append(timer)
        return timer

    def advance(self, seconds: float) -> None:
        self.now += seconds
        for timer in [timer for timer in self._timers if timer.live and timer.at <= self.now]:
            timer.live = False
            timer.callback()


@dataclass
class FakeProgress:
    title: str
    cancel: Callable[[], None]
    texts: list[str] = field(default_factory=list)
    ended: str | None = None

    def report(self, text: str) -> None:
        self.texts.append(text)

    def end(self, text: str) -> None:
        assert self.ended is None, "a progress ends once"
        self.ended = text


class RecordingEditor:
    """Remembers what it was told to show."""

    def __init__(self) -> None:
        self.shown: dict[str, tuple[Shown, ...]] = {}
        self.publications: list[tuple[str, tuple[str, ...]]] = []
        self.refreshes = 0
        self.hint_refreshes = 0
        self.told: list[str] = []
        self.progresses: list[FakeProgress] = []

    def publish(self, snapshot: Snapshot, path: str, shown: tuple[Shown, ...]) -> None:
        self.shown[path] = shown
        self.publications.append((path, tuple(item.finding.message for item in shown)))

    def refresh(self) -> None:
        self.refreshes += 1

    def refresh_hints(self) -> None:
        self.hint_refreshes += 1

    def update(self, snapshot: Snapshot) -> None:
        pass

    def tell(self, message: str) -> None:
        self.told.append(message)

    def progress(self, title: str, cancel: Callable[[], None]) -> FakeProgress:
        self.progresses.append(FakeProgress(title, cancel))
        return self.progresses[-1]

    def messages(self, path: str) -> list[tuple[int, str]]:
        """Line and message of what is shown in a file."""
        return [(item.finding.line, item.finding.message) for item in self.shown.get(path, ())]


class FakeFollower:
    """Remembers what it was to follow; the test says what changed."""

    def __init__(self) -> None:
        self.files: frozenset[str] = frozenset()
        self.closed = False
        self.waiting: frozenset[str] = frozenset()

    def follow(self, files: frozenset[str]) -> None:
        self.files = files

    def close(self) -> None:
        self.closed = True


class Harness:
    """A session, and files in it: `edit` sends the next version of a text."""

    def __init__(self) -> None:
        self.runner = FakeRunner()
        self.clock = FakeClock()
        self.editor = RecordingEditor()
        self.folders = Folders(lambda settings: self.runner, self.editor.tell)
        self.follower = FakeFollower()
        self.session = Session(self.editor, self.folders, self.clock, self.follower)
        self.session.start()
        self._versions: dict[str, int] = {}

    async def configure(self, **changes: Any) -> None:
        await self.session.configure("", dataclasses.replace(Settings(), **changes))

    def open(self, text: str, path: str = "/w/model.py") -> Fixture:
        fixture = parse(text)
        self._versions[path] = 1
        self.session.open(f"file://{path}", path, 1, fixture.source)
        return fixture

    def edit(self, text: str, path: str = "/w/model.py") -> Fixture:
        fixture = parse(text)
        self._versions[path] += 1
        self.session.change(path, self._versions[path], fixture.source)
        return fixture

    def save(self, path: str = "/w/model.py") -> None:
        self.session.save(path)

    async def settled(self, path: str = "/w/model.py") -> Snapshot:
        return await asyncio.wait_for(self.session.settled(path, self._versions.get(path)), TIMEOUT_S)

    async def flushed(self) -> None:
        """Let what was scheduled happen: the session shows changes in the next turn of the loop."""
        for _ in range(3):
            await asyncio.sleep(0)


def found(line: int, message: str, code: str = "graph-break", path: str = "/w/model.py", **changes: Any) -> Finding:
    finding = Finding(code, Severity.WARNING, path, line, 0, line, 1, message, Rung.CAPTURE)
    return dataclasses.replace(finding, **changes)


def place(line: int, path: str = "/w/model.py") -> Place:
    return Place(path, line)
