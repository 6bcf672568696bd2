"""What can be done at a place: every lens command, and fixes for findings."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from inductoscope.server.features import fixes
from inductoscope.server.features.commands import Command, CommandName, obstacle
from inductoscope.server.snapshot import Snapshot, TargetView


class ActionKind(enum.Enum):
    """Kinds as clients filter by them."""

    QUICK_FIX = "quickfix"
    FIX_ALL = "source.fixAll.inductoscope"
    CHECK = "source.inductoscope.check"
    BENCHMARK = "source.inductoscope.benchmark"
    SHOW_KERNELS = "source.inductoscope.showKernels"
    SHOW_GUARDS = "source.inductoscope.showGuards"
    SHOW_TIMELINE = "source.inductoscope.showTimeline"

    def is_among(self, only: Iterable[str] | None) -> bool:
        """Whether it was asked for: kinds are dotted, and each names all that is below it; None asks for all."""
        return only is None or any(name in ("", self.value) or self.value.startswith(f"{name}.") for name in only)


@dataclass(frozen=True)
class Action:
    """Something that can be done: a command or an edit; `disabled` says why it cannot be done now."""

    title: str
    kind: ActionKind
    command: Command | None = None
    fix: fixes.Fix | None = None
    disabled: str | None = None


_SOURCE_ACTIONS = (
    (CommandName.CHECK, ActionKind.CHECK, "Check {} now"),
    (CommandName.BENCHMARK, ActionKind.BENCHMARK, "Benchmark {}: compiled vs eager"),
    (CommandName.SHOW_KERNELS, ActionKind.SHOW_KERNELS, "Show the kernels of {}"),
    (CommandName.SHOW_GUARDS, ActionKind.SHOW_GUARDS, "Show what {} is held to"),
    (CommandName.SHOW_TIMELINE, ActionKind.SHOW_TIMELINE, "Show where the time went when {} was compiled"),
)


def actions(
    snapshot: Snapshot, path: str, first: int, last: int, only: Iterable[str] | None = None
) -> tuple[Action, ...]:
    """What can be done for lines `first` to `last` of an open file, of the kinds in `only`; None means all kinds.

    Nothing is computed for other kinds: editors ask for one kind at each save.
    """
    wanted = {kind for kind in ActionKind if kind.is_among(only)}
    found: list[Action] = []
    if ActionKind.QUICK_FIX in wanted:
        found += [_fix(fix, ActionKind.QUICK_FIX) for fix in fixes.fixes(snapshot, path, first, last)]
    for view in snapshot.targets_in(path):
        if _touches(snapshot, view, first, last):
            found += _of(snapshot, view, wanted)
    if ActionKind.FIX_ALL in wanted:
        found += [_fix(fix, ActionKind.FIX_ALL) for fix in fixes.all_safe(snapshot, path)]
    return tuple(found)


def _fix(fix: fixes.Fix, kind: ActionKind) -> Action:
    title = f"Everywhere in this file: {fix.title}" if kind is ActionKind.FIX_ALL else fix.title
    return Action(title, kind, fix=fix, disabled=fix.disabled)


def _of(snapshot: Snapshot, view: TargetView, wanted: set[ActionKind]) -> Iterator[Action]:
    for name, kind, words in _SOURCE_ACTIONS:
        if kind in wanted:
            again = name is CommandName.CHECK and view.crashes
            title = ("Retry {}" if again else words).format(view.target.name)
            command = Command(name, title, view.target.file, view.target.name)
            yield Action(title, kind, command=command, disabled=obstacle(snapshot, view, name))


def _touches(snapshot: Snapshot, view: TargetView, first: int, last: int) -> bool:
    line = snapshot.line_of(view)
    if line is None:
        return False
    length = max(view.target.end_line - view.target.line, 0)
    return line <= last and first <= line + length
