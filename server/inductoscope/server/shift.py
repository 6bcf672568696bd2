"""Where the lines of a text went when it was edited.

A result speaks of the text that was compiled; the editor shows a later one.  `Shift` maps lines between the two by a
line diff, so that undoing an edit brings everything back, which remapping edit by edit would not.  A line that was
changed, however little, maps to nothing.
"""

from __future__ import annotations

import difflib
import threading
from collections import OrderedDict
from dataclasses import dataclass

from inductoscope.server.positions import Text

_DIFF_LIMIT = 4000
"""Lines (both sides together) up to which the middle of an edit is diffed; beyond it counts as rewritten."""


@dataclass(frozen=True)
class _Run:
    """`count` equal lines, from line `old` before and line `new` after."""

    old: int
    new: int
    count: int


@dataclass(frozen=True)
class Shift:
    """Line numbers (1-based) of an older text against those of a newer one."""

    runs: tuple[_Run, ...]

    def forward(self, line: int) -> int | None:
        """Where `line` of the older text is now, or None when it was edited or deleted."""
        return next((line - r.old + r.new for r in self.runs if r.old <= line < r.old + r.count), None)

    def back(self, line: int) -> int | None:
        """Where `line` of the newer text was, or None when it is new."""
        return next((line - r.new + r.old for r in self.runs if r.new <= line < r.new + r.count), None)

    def near(self, line: int) -> int:
        """Where `line` is now, or for an edited one where the nearest kept line above it went."""
        for run in reversed(self.runs):
            if run.old <= line:
                return run.new + min(line - run.old, run.count - 1)
        return 1

    def keeps(self, first: int, last: int) -> bool:
        """Whether lines `first` to `last` are all still there, together and in order."""
        return any(r.old <= first and last < r.old + r.count for r in self.runs)


def between(old: Text, new: Text) -> Shift:
    """The shift from `old` to `new`."""
    before, after = old.lines, new.lines
    if before == after:
        return Shift((_Run(1, 1, len(before)),))
    head = _common(before, after)
    tail = _common(before[head:][::-1], after[head:][::-1])
    middle_old, middle_new = before[head : len(before) - tail], after[head : len(after) - tail]
    runs = [_Run(1, 1, head)]
    if len(middle_old) + len(middle_new) <= _DIFF_LIMIT:
        blocks = difflib.SequenceMatcher(None, middle_old, middle_new, autojunk=False).get_matching_blocks()
        runs += [_Run(head + block.a + 1, head + block.b + 1, block.size) for block in blocks]
    runs.append(_Run(len(before) - tail + 1, len(after) - tail + 1, tail))
    return Shift(tuple(run for run in runs if run.count))


class Shifts:
    """Remembers the `most` newest shifts, of texts with at most `budget` characters in all.  Any thread may ask."""

    def __init__(self, most: int = 256, budget: int = 16_000_000) -> None:
        self.most = most
        self._budget = budget
        self._kept: OrderedDict[tuple[Text, Text], Shift] = OrderedDict()
        self._lock = threading.Lock()

    def between(self, old: Text, new: Text) -> Shift:
        """The shift from `old` to `new`."""
        key = (old, new)
        with self._lock:
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
                return found
        found = between(old, new)
        with self._lock:
            self._kept[key] = found
            while len(self._kept) > self.most or (len(self._kept) > 1 and self.size > self._budget):
                self._kept.popitem(last=False)
        return found

    @property
    def size(self) -> int:
        """Characters of the texts that are held on to."""
        return sum(len(old.source) + len(new.source) for old, new in self._kept)


def _common(left: tuple[str, ...], right: tuple[str, ...]) -> int:
    """How many items both begin with; compares slices, as a document may have hundreds of thousands of lines."""
    low, high = 0, min(len(left), len(right))
    while low < high:
        middle = (low + high + 1) // 2
        if left[low:middle] == right[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
