"""However a session came to its texts, it ends with what a session that starts there would show."""

from __future__ import annotations

import ast
import asyncio
import os
import shutil
import tempfile
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from incremental.world import World
from inductoscope.protocol.report import Status
from inductoscope.server import resting
from inductoscope.server.settings import RunMode

NAMES = ("model.py", "helper.py", "far.py", "plugin.py")
FIRST = {
    "model.py": 'import helper\nENTRY = "f"\ndef get_inputs(): ...\ndef f(x):\n    print(x)\n    return helper.g(x)\n',
    "helper.py": "import far\ndef g(x):\n    return x\n",
    "far.py": "x = 1\n",
    "plugin.py": "print(0)\n",
}
LINES = (
    "# a comment",
    "",
    "    print(x)",
    "    x = [\n        x,\n        print(-x),\n    ]",
    "    CRASH",
    '    load("plugin")',
    "    x = -x",
    "x = 2",
    "not python (",
)


class AnyHistory(RuleBasedStateMachine):
    """Random steps in one session; at the end it is compared with a new one that keeps nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.folder = Path(tempfile.mkdtemp())
        self.world = self.run(self._make())

    async def _make(self) -> World:
        return World(self.folder)

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.loop.run_until_complete(work)

    async def _settle_after(self, act: Any, *arguments: Any) -> None:
        done = act(*arguments)
        if asyncio.iscoroutine(done):
            await done
        await self.world.settle()

    def do(self, act: Any, *arguments: Any) -> None:
        self.run(self._settle_after(act, *arguments))

    @initialize()
    def begin(self) -> None:
        for name, text in FIRST.items():
            self.world.write(name, text)
        self.do(self.world.start)
        self.do(self.world.open, "model.py")

    @rule(name=st.sampled_from(NAMES), line=st.sampled_from(LINES), at=st.integers(0, 8))
    def insert(self, name: str, line: str, at: int) -> None:
        if name in self.world.buffers:
            lines = self.world.read(name).split("\n")
            self.do(self.world.edit, name, "\n".join([*lines[:at], line, *lines[at:]]))

    @rule(name=st.sampled_from(NAMES), at=st.integers(0, 8))
    def delete_line(self, name: str, at: int) -> None:
        if name in self.world.buffers:
            lines = self.world.read(name).split("\n")
            self.do(self.world.edit, name, "\n".join([*lines[:at], *lines[at + 1 :]]))

    @rule(name=st.sampled_from(NAMES))
    def undo_everything(self, name: str) -> None:
        if name in self.world.buffers:
            self.do(self.world.edit, name, FIRST[name])
            self.do(self.world.save, name)

    @rule(name=st.sampled_from(NAMES))
    def save(self, name: str) -> None:
        if name in self.world.buffers:
            self.do(self.world.save, name)

    @rule(name=st.sampled_from(NAMES[1:]), line=st.sampled_from(LINES), at=st.integers(0, 3))
    def change_on_disk(self, name: str, line: str, at: int) -> None:
        if name not in self.world.buffers and (self.folder / name).exists():
            lines = (self.folder / name).read_text().split("\n")
            self.world.write(name, "\n".join([*lines[:at], line, *lines[at:]]))
            self.do(self.world.tell, name)

    @rule(name=st.sampled_from(NAMES[1:]))
    def vanish_or_come_back(self, name: str) -> None:
        if name in self.world.buffers:
            return
        if (self.folder / name).exists():
            (self.folder / name).unlink()
        else:
            self.world.write(name, FIRST[name])
        self.do(self.world.tell, name)

    @rule(name=st.sampled_from(NAMES[1:]))
    def open_or_close(self, name: str) -> None:
        if name in self.world.buffers:
            self.do(self.world.close, name)
        elif (self.folder / name).exists():
            self.do(self.world.open, name)

    @rule(device=st.sampled_from(["cpu", "sim:H200"]), mode=st.sampled_from([RunMode.ON_SAVE, RunMode.ON_TYPE]))
    def set(self, device: str, mode: RunMode) -> None:
        self.do(lambda: self.world.configure(device=device, run=mode))

    @rule(seconds=st.sampled_from([0.1, 5.0]))
    def wait(self, seconds: float) -> None:
        self.do(self.world.clock.advance, seconds)

    @rule()
    def restart(self) -> None:
        for name in list(self.world.buffers):
            self.do(self.world.save, name)
        self.do(self.world.restart)

    @rule()
    def check(self) -> None:
        self.do(self.world.session.check)

    @rule()
    def cancel(self) -> None:
        """Something is asked for, and taken back at once."""

        def ask_and_cancel() -> None:
            self.world.session.check()
            for progress in self.world.editor.progresses:
                if progress.ended is None:
                    progress.cancel()

        self.do(ask_and_cancel)

    @invariant()
    def nothing_is_shown_twice(self) -> None:
        for shown in self.world.editor.shown.values():
            keys = [(one.finding.code, one.finding.line, one.finding.column, one.finding.message) for one in shown]
            assert len(keys) == len(set(keys))

    def teardown(self) -> None:
        try:
            if self.world.buffers:
                self.run(self._compare())
        finally:
            self.run(self.world.session.shutdown())
            self.loop.close()
            shutil.rmtree(self.folder)

    async def _compare(self) -> None:
        for name, text in list(self.world.buffers.items()):
            if not _is_python(text):  # whose targets are those that it had, which a new session cannot know
                self.world.edit(name, FIRST[name])
            self.world.save(name)
            await self.world.settle()
            self.world.clock.advance(resting.LONGEST_S)
            await self.world.settle()
        fresh = World(self.folder, self.world.settings, keeps=False)
        await fresh.start()
        for name in self.world.buffers:
            fresh.open(name)
        await fresh.settle()
        try:
            self._same(fresh)
        finally:
            await fresh.session.shutdown()

    def _same(self, fresh: World) -> None:
        mine, theirs = (_reports(world) for world in (self.world, fresh))
        assert mine == theirs
        if not any(status is Status.FAILED for _, status, _ in theirs.values()):
            shown = ({name: world.shown(name) for name in NAMES} for world in (self.world, fresh))
            assert next(shown) == next(shown)


def _is_python(text: str) -> bool:
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


def _reports(world: World) -> dict[str, Any]:
    settled = {key: view.settled for key, view in world.session.snapshot().targets.items()}
    reports = {key: result.report for key, result in settled.items() if result is not None}
    return {
        key: (report.device, report.status, [(one.file, one.line, one.column, one.message) for one in report.findings])
        for key, report in reports.items()
    }


EXAMPLES = int(os.environ.get("INDUCTOSCOPE_EXAMPLES", "0"))
"""How many histories to try, each time others; by default the same few."""

AnyHistory.TestCase.settings = settings(
    max_examples=EXAMPLES or 12,
    derandomize=not EXAMPLES,
    database=None,
    stateful_step_count=20,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.generate,),
)
TestAnyHistory = AnyHistory.TestCase
