"""Scenarios as text: files, then steps with what must be true after each.

    === Saving a comment runs nothing
    --- model.py
    ENTRY = "f"
    ...
    > open model.py
    ran f
    shows model.py print(x)@4
    > edit model.py return x => return -x

A line that begins with `>` does something; the lines below it, up to the next, are expectations.  `\\n` in an edit is a
line end.  The verbs are the methods of `Steps` and `Expectations`.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from incremental.world import World
from inductoscope.protocol.report import Rung
from inductoscope.server.features import lens, status
from inductoscope.server.settings import RunMode, Trust


@dataclass(frozen=True)
class Step:
    """What is done, and what holds after it."""

    line: int
    action: str
    expected: tuple[str, ...]


@dataclass
class Scenario:
    """A title, the files that there are at first by name, and steps."""

    title: str
    files: dict[str, str] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)


def parse(text: str) -> list[Scenario]:
    """The scenarios of a text."""
    scenarios: list[Scenario] = []
    file: str | None = None
    for number, line in enumerate(text.splitlines(), start=1):
        if line.startswith("=== "):
            scenarios.append(Scenario(line[4:]))
            file = None
        elif line.startswith("--- "):
            file = line[4:]
            scenarios[-1].files[file] = ""
        elif line.startswith("> "):
            file = None
            scenarios[-1].steps.append(Step(number, line[2:], ()))
        elif file is not None:
            scenarios[-1].files[file] += line + "\n"
        elif line.strip():
            step = scenarios[-1].steps.pop()
            scenarios[-1].steps.append(Step(step.line, step.action, (*step.expected, line.strip())))
    return scenarios


async def play(scenario: Scenario, folder: Path) -> None:
    """Play a scenario.  Raises `AssertionError` naming the line whose expectation fails."""
    world = World(folder)
    for name, text in scenario.files.items():
        world.write(name, text.rstrip("\n") + "\n")
    await world.start()
    try:
        for step in scenario.steps:
            before = _counts(world)
            await Steps(world).do(step.action)
            await world.settle()
            for expected in step.expected:
                Expectations(world, before).check(expected, f"line {step.line}: {step.action}")
    finally:
        await world.session.shutdown()


def _counts(world: World) -> dict[str, int]:
    reader = world.reader
    lists = {"ran": reader.runs, "stages": reader.stages, "cancelled": reader.cancelled, "recalled": world.recall.hits}
    return {**{name: len(items) for name, items in lists.items()}, "reader": id(reader)}


class Steps:
    """The verbs of actions."""

    def __init__(self, world: World) -> None:
        self.world = world

    async def do(self, action: str) -> None:
        verb, _, rest = action.partition(" ")
        done: Any = getattr(self, f"do_{verb}")(rest)
        if isinstance(done, Awaitable):
            await done

    def do_open(self, name: str) -> None:
        self.world.open(name)

    def do_close(self, name: str) -> None:
        self.world.close(name)

    def do_save(self, name: str) -> None:
        self.world.save(name)

    def do_edit(self, rest: str) -> None:
        """`edit FILE OLD => NEW`: in the editor."""
        name, _, change = rest.partition(" ")
        self.world.edit(name, _changed(self.world.read(name), change))

    def do_write(self, rest: str) -> None:
        """`write FILE OLD => NEW`: on disk, and the watchers tell."""
        self.do_smuggle(rest)
        self.world.tell(rest.partition(" ")[0])

    def do_smuggle(self, rest: str) -> None:
        """The same, and nobody tells."""
        name, _, change = rest.partition(" ")
        path = self.world.folder / name
        self.world.write(name, _changed(path.read_text() if path.exists() else "", change))

    def do_delete(self, rest: str) -> None:
        for name in rest.split():
            (self.world.folder / name).unlink()
        self.world.tell(*rest.split())

    def do_move(self, rest: str) -> None:
        """`move OLD NEW`, as an editor that saves by renaming does, or a person."""
        old, new = rest.split()
        (self.world.folder / old).rename(self.world.folder / new)
        self.world.tell(old, new)

    def do_link(self, rest: str) -> None:
        """`link NAME TARGET`"""
        name, target = rest.split()
        (self.world.folder / name).unlink(missing_ok=True)
        (self.world.folder / name).symlink_to(self.world.folder / target)
        self.world.tell(name)

    def do_branch(self, rest: str) -> None:
        """`branch OLD => NEW`: change every file on disk at once, those that are open too."""
        names = [path.name for path in self.world.folder.glob("*.py")]
        for name in names:
            path = self.world.folder / name
            path.write_text(_changed(path.read_text(), rest))
        self.world.tell(*names)
        for name in self.world.buffers:  # an editor takes over what is on disk
            self.world.edit(name, (self.world.folder / name).read_text())

    async def do_set(self, rest: str) -> None:
        """`set NAME VALUE`"""
        name, value = rest.split()
        kinds: dict[str, Any] = {
            "run": RunMode,
            "rung": Rung,
            "timeout_s": float,
            "hide": lambda code: frozenset([code]),
        }
        await self.world.configure(**{name: kinds.get(name, str)(value)})

    def do_trust(self, rest: str) -> None:
        self.world.session.trust(Trust(rest))

    def do_check(self, rest: str) -> None:
        self.world.session.check()

    def do_measure(self, name: str) -> None:
        view = self.world.view(name)
        self.world.session.benchmark(view.target.file, name)

    async def do_workers(self, rest: str) -> None:
        """`workers restart`: the person wants new ones."""
        await self.world.session.restart()

    async def do_restart(self, rest: str) -> None:
        """End the editor and start it again."""
        await self.world.restart()

    def do_wait(self, seconds: str) -> None:
        self.world.clock.advance(float(seconds))

    def do_slow(self, seconds: str) -> None:
        """Runs take so long from now on."""
        self.world.reader.takes_s = float(seconds)

    def do_install(self, name: str) -> None:
        """Another version is installed."""
        self.world.environments.current = name

    def do_cancel(self, name: str) -> None:
        """The person cancels what is going on."""
        progress = next(one for one in self.world.editor.progresses if one.ended is None and one.title.endswith(name))
        progress.cancel()

    def do_damage(self, rest: str) -> None:
        """Harm everything that is kept."""
        for path in (self.world.folder / ".cache").rglob("*.result"):
            path.write_bytes(path.read_bytes()[:40])


class Expectations:
    """The verbs of expectations; counts are since `before`."""

    def __init__(self, world: World, before: dict[str, int]) -> None:
        self.world = world
        self.before = before if before["reader"] == id(world.reader) else {}

    def check(self, expected: str, where: str) -> None:
        verb, _, rest = expected.partition(" ")
        actual = getattr(self, f"get_{verb}")(rest)
        wanted = self._wanted(verb, rest)
        assert actual == wanted, f"{where}\n  expected: {verb} {wanted}\n  actual:   {verb} {actual}"

    def _wanted(self, verb: str, rest: str) -> Any:
        if verb in ("ran", "recalled", "cancelled"):
            return [] if rest == "nothing" else sorted(rest.split())
        _, _, value = rest.partition(" ")
        if verb in ("shows", "stages"):
            value = rest if verb == "stages" else value
            return [] if value == "nothing" else sorted(item.strip() for item in value.split(";"))
        return value

    def _since(self, name: str, items: list[str]) -> list[str]:
        return sorted(items[self.before.get(name, 0) :])

    def get_ran(self, rest: str) -> list[str]:
        return self._since("ran", self.world.reader.runs)

    def get_stages(self, rest: str) -> list[str]:
        return self._since("stages", self.world.reader.stages)

    def get_recalled(self, rest: str) -> list[str]:
        return self._since("recalled", self.world.recall.hits)

    def get_cancelled(self, rest: str) -> list[str]:
        return self._since("cancelled", self.world.reader.cancelled)

    def get_shows(self, rest: str) -> list[str]:
        """`shows FILE MESSAGE@LINE; …`"""
        shown = self.world.shown(rest.split(maxsplit=1)[0])
        return sorted(f"{message.removesuffix(' breaks the graph').rstrip('.')}@{line}" for line, message in shown)

    def get_cause(self, rest: str) -> str:
        """`cause TARGET WORDS`: why it was run last."""
        return self.world.view(rest.split(maxsplit=1)[0]).cause

    def get_state(self, rest: str) -> str:
        """`state TARGET STATE [stale]`, as clients are told."""
        told = status.status(self.world.session.snapshot())
        told = told if isinstance(told, dict) else {"targets": [vars(one) for one in told.targets]}
        one = next(one for one in told["targets"] if one["name"] == rest.split(maxsplit=1)[0])
        state = getattr(one["state"], "value", one["state"])
        return f"{state} stale" if one["stale"] else str(state)

    def get_line(self, rest: str) -> str:
        """`line TARGET NUMBER`: where it is on screen."""
        view = self.world.view(rest.split(maxsplit=1)[0])
        return str(self.world.session.snapshot().line_of(view))

    def get_says(self, rest: str) -> str:
        """`says TARGET YES|NO WORDS`: whether the lens has these words."""
        name, _, value = rest.partition(" ")
        wanted, _, words = value.partition(" ")
        said = lens.summary(self.world.session.snapshot(), self.world.view(name))
        return value if (words in said) == (wanted == "yes") else said

    def get_told(self, rest: str) -> str:
        """`told _ PART`: the person was told something with these words."""
        _, _, part = rest.partition(" ")
        return part if any(part in said for said in self.world.editor.told) else str(self.world.editor.told)

    def get_age(self, rest: str) -> str:
        """`age TARGET new|kept`: whether the answer was made by a run of this session."""
        settled = self.world.view(rest.split(maxsplit=1)[0]).settled
        assert settled is not None
        return "new" if settled.report.cached is None else "kept"


def _changed(text: str, change: str) -> str:
    """`OLD => NEW`, every occurrence; `=> TEXT` is all of it, `+ TEXT` at its start."""
    change = change.replace("\\n", "\n")
    if change.startswith("+ "):
        return change[2:] + text
    old, arrow, new = re.split(r"( ?=> ?)", change, maxsplit=1)
    assert arrow and (not old or old in text), f"{old!r} is not in the text"
    return text.replace(old, new) if old else new
