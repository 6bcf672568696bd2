"""What can be done at a place: every lens command, and fixes for findings."""

from __future__ import annotations

import enum
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


def actions(snapshot: Snapshot, path: str, first: int, last: int) -> tuple[Action, ...]:
    """What can be done for lines `first` to `last` of an open file."""
    found = [_fix(fix, ActionKind.QUICK_FIX) for fix in fixes.fixes(snapshot, path, first, last)]
    for view in snapshot.targets_in(path):
        if _touches(snapshot, view, first, last):
            found += _of(snapshot, view)
    found += [_fix(fix, ActionKind.FIX_ALL) for fix in fixes.all_safe(snapshot, path)]
    return tuple(found)


def _fix(fix: fixes.Fix, kind: ActionKind) -> Action:
    title = f"Everywhere in this file: {fix.title}" if kind is ActionKind.FIX_ALL else fix.title
    return Action(title, kind, fix=fix, disabled=fix.disabled)


def _of(snapshot: Snapshot, view: TargetView) -> list[Action]:
    found = []
    for name, kind, words in _SOURCE_ACTIONS:
        title = words.format(view.target.name)
        command = Command(name, title, view.target.file, view.target.name)
        found.append(Action(title, kind, command=command, disabled=obstacle(snapshot, view, name)))
    return found


def _touches(snapshot: Snapshot, view: TargetView, first: int, last: int) -> bool:
    line = snapshot.line_of(view)
    if line is None:
        return False
    length = max(view.target.end_line - view.target.line, 0)
    return line <= last and first <= line + length
