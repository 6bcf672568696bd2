"""Why a target is run, in a few words for people."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from inductoscope.server import words
from inductoscope.server.positions import Text
from inductoscope.server.settings import Settings
from inductoscope.server.snapshot import Snapshot, TargetView

OPENED = "opened"
ASKED_FOR = "asked for"
TRUSTED = "the workspace is trusted now"
RESTARTED = "restarted"
PROJECT = "the project's settings changed"


def edited(snapshot: Snapshot, view: TargetView) -> str | None:
    """The first line of the target's program that differs from what its last run was about."""
    file, result = view.target.file, view.settled
    texts = result.texts if result is not None else {}
    for path in sorted(texts, key=lambda path: (path != file, path)):
        now = snapshot.text_now(path)
        if now is not None and now != texts[path]:
            where = "" if path == file else f" of {Path(path).name}"
            return f"edited line {_first_difference(texts[path], now)}{where}"
    return None


def on_disk(paths: Iterable[str]) -> str:
    """Files were written, made or removed."""
    first, *others = sorted(paths) or ["files"]
    more = f" and {words.count(len(others), 'more file')}" if others else ""
    return f"{Path(first).name}{more} changed on disk"


def settings(old: Settings, new: Settings) -> str:
    """Settings changed."""
    names = ("interpreter", "device", "rung", "probe")
    changed = [name for name in names if getattr(old, name) != getattr(new, name)]
    return f"settings: {', '.join(changed)}" if changed else "settings"


def _first_difference(then: Text, now: Text) -> int:
    """The first line of `now` that differs, from 1."""
    before, after = then.source, now.source
    low, high = 0, min(len(before), len(after))
    while low < high:  # halving compares slices at the speed of memory, which counts in a document of megabytes
        middle = (low + high + 1) // 2
        if before[low:middle] == after[low:middle]:
            low = middle
        else:
            high = middle - 1
    return after.count("\n", 0, low) + 1
