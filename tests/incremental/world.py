"""A session over real files, with a worker that compiles by reading: what it finds follows from the texts alone.

A call of `print` in the program breaks the graph on its line; `load("name")` imports a file that reading does not see,
`data("name")` opens one, `unseen("name")` does so without anybody knowing; the name `CRASH` kills the worker, `HANG`
keeps it busy.  So any two sessions that end with the same texts must show the same, however they got there.
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from inductoscope.protocol.messages import Failure, FailureKind
from inductoscope.protocol.report import Finding, Rung, Severity, Status, TargetReport
from inductoscope.server.clock import Clock
from inductoscope.server.folders import Folders
from inductoscope.server.recall import Question, Recall
from inductoscope.server.result_store import ResultStore
from inductoscope.server.session import Session
from inductoscope.server.settings import Settings
from inductoscope.server.snapshot import Activity, TargetView
from inductoscope.server.workers.run import OnEvent, RunOutcome, RunRequest
from support.session import HELLO, FakeClock, FakeFollower, RecordingEditor

TIMEOUT_S = 20


class OneEnvironment:
    """What is installed; a test changes the name."""

    def __init__(self) -> None:
        self.current = "torch 2.13"

    async def name(self, words: tuple[str, ...]) -> str:
        return self.current


class NotingRecall(Recall):
    """Notes the names of targets that were answered from the store, and how many calls are not over."""

    hits: list[str]
    at_work = 0

    async def find(self, question: Question) -> RunOutcome | None:
        with self._working():
            found = await super().find(question)
        if found is not None:
            self.hits.append(question.request.target.name)
        return found

    async def keep(self, question: Question, outcome: RunOutcome, began: float) -> None:
        with self._working():
            await super().keep(question, outcome, began)

    @contextlib.contextmanager
    def _working(self) -> Iterator[None]:
        self.at_work += 1
        try:
            yield
        finally:
            self.at_work -= 1


class Reader:
    """Implements `ports.Runner` by reading the program."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.runs: list[str] = []
        self.stages: list[str] = []
        self.cancelled: list[str] = []
        self.takes_s = 0.0
        self.hanging = False

    def interpreter(self, file: str) -> tuple[str, ...] | None:
        return ("/usr/bin/python3",)

    async def close(self) -> None:
        pass

    async def run(self, request: RunRequest, on_event: OnEvent) -> RunOutcome:
        target = request.target
        self.runs.append(target.name)
        self.stages.append(f"{target.name} {request.rung.value} {request.device}")
        texts = dict(self._program(request, target.file))
        read = [str(Path(target.file).parent / name) for tree in texts.values() for name in _calls("data", tree)]
        names = {name for tree in texts.values() for name in _names(tree)}
        if "HANG" in names:
            await self._hang(target.name)
        if isinstance(self._clock, FakeClock):
            self._clock.now += self.takes_s
        report = TargetReport(target.file, target.name, target.line, request.device, request.rung, Status.PARTIAL)
        if "CRASH" in names:
            said = "The worker died."
            finding = _finding("worker-crash", target.file, target.line, 0, target.line, 0, said)
            report = dataclasses.replace(report, status=Status.FAILED, message=said, findings=(finding,))
            return RunOutcome(report, Failure(FailureKind.CRASH, said), HELLO, (*texts, *read))
        findings = [found for path, tree in sorted(texts.items()) for found in _breaks(path, tree)]
        report = dataclasses.replace(report, findings=tuple(findings))
        return RunOutcome(report, None, HELLO, (*texts, *read))

    async def _hang(self, name: str) -> None:
        self.hanging = True
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            self.cancelled.append(name)
            raise
        finally:
            self.hanging = False

    def _program(self, request: RunRequest, file: str) -> Iterator[tuple[str, ast.Module]]:
        waiting, seen = [file], {file}
        while waiting:
            path = waiting.pop()
            text = request.overlays.get(path)
            if text is None and not Path(path).exists():
                continue
            tree = _parse(Path(path).read_text() if text is None else text)
            yield path, tree
            found = {str(Path(path).parent / f"{name}.py") for name in _imported(tree)} - seen
            if any("CRASH" in _read(path, name) for name in _calls("unseen", tree)):
                yield "", ast.parse("CRASH")
            seen |= found
            waiting += found


@dataclasses.dataclass
class World:
    """A folder and the session that is open over it."""

    folder: Path
    settings: Settings = dataclasses.field(default_factory=Settings)
    keeps: bool = True

    def __post_init__(self) -> None:
        self.environments = OneEnvironment()
        self.buffers: dict[str, str] = {}
        self._versions: dict[str, int] = {}
        self.begin()

    def begin(self) -> None:
        """Start a session, as an editor does."""
        self.clock = FakeClock()
        self.reader = Reader(self.clock)
        self.editor = RecordingEditor()
        self.follower = FakeFollower()
        store = ResultStore(self.folder / ".cache") if self.keeps else None
        self.recall = NotingRecall(store, self.environments)  # type: ignore[arg-type]
        self.recall.hits = []
        self.folders = Folders(lambda settings: self.reader, self.editor.tell)
        self.session = Session(self.editor, self.folders, self.clock, self.follower, self.recall)

    async def start(self) -> None:
        await self.session.configure("", self.settings)
        self.session.start()

    async def configure(self, **changes: Any) -> None:
        self.settings = dataclasses.replace(self.settings, **changes)
        await self.session.configure("", self.settings)

    async def restart(self) -> None:
        """End the editor and start it again, with the same files open."""
        await self.session.shutdown()
        names = list(self.buffers)
        self.buffers.clear()
        self.begin()
        await self.start()
        for name in names:
            self.open(name)

    def path(self, name: str) -> str:
        return str(self.folder / name)

    def write(self, name: str, text: str) -> None:
        """Write a file, and tell nobody."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def read(self, name: str) -> str:
        """The text of a file, unsaved text included."""
        return self.buffers[name] if name in self.buffers else (self.folder / name).read_text()

    def open(self, name: str) -> None:
        text = (self.folder / name).read_text()
        self.buffers[name], self._versions[name] = text, 1
        self.session.open(f"file://{self.path(name)}", self.path(name), 1, text)

    def edit(self, name: str, text: str) -> None:
        self._versions[name] += 1
        self.buffers[name] = text
        self.session.change(self.path(name), self._versions[name], text)

    def save(self, name: str) -> None:
        self.write(name, self.buffers[name])
        self.session.save(self.path(name))

    def close(self, name: str) -> None:
        del self.buffers[name]
        self.session.close(self.path(name))

    def tell(self, *names: str) -> None:
        """The watchers tell of these files."""
        self.session.files_changed(frozenset(map(self.path, names)))

    async def settle(self) -> None:
        """Until nothing runs, is looked up or is being kept, or until a run hangs; a pause in typing may go on."""
        loop = asyncio.get_running_loop()
        deadline, quiet = loop.time() + TIMEOUT_S, 0
        while quiet < 5:
            assert loop.time() < deadline, "it does not come to rest"
            await asyncio.sleep(0)
            quiet = 0 if self._is_busy() else quiet + 1

    def _is_busy(self) -> bool:
        if self.recall.at_work:
            return True
        active = {view.activity for view in self.session.snapshot().targets.values()} - {Activity.IDLE}
        return bool(active) and not self.reader.hanging

    def view(self, name: str) -> TargetView:
        return next(view for view in self.session.snapshot().targets.values() if view.target.name == name)

    def shown(self, name: str) -> list[tuple[int, str]]:
        return self.editor.messages(self.path(name))


def _read(beside: str, name: str) -> str:
    return (Path(beside).parent / f"{name}.py").read_text()


def _parse(text: str) -> ast.Module:
    try:
        return ast.parse(text)
    except SyntaxError:
        return ast.parse("CRASH")


def _names(tree: ast.AST) -> Iterator[str]:
    yield from (node.id for node in ast.walk(tree) if isinstance(node, ast.Name))


def _imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
    yield from _calls("load", tree)


def _calls(function: str, tree: ast.AST) -> Iterator[str]:
    """The arguments of `function("name")`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == function and node.args:
            yield str(ast.literal_eval(node.args[0]))


def _breaks(path: str, tree: ast.AST) -> Iterator[Finding]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "print":
            said = f"{ast.unparse(node)} breaks the graph"
            end = (node.end_lineno or node.lineno, node.end_col_offset or 0)
            yield _finding("graph-break", path, node.lineno, node.col_offset, *end, said)


def _finding(code: str, path: str, line: int, column: int, end_line: int, end_column: int, message: str) -> Finding:
    return Finding(code, Severity.WARNING, path, line, column, end_line, end_column, message, Rung.CAPTURE)
