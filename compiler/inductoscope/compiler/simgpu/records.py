"""What the simulated device has to tell: frozen records, and the journal that collects them.

The journal knows where the user's program stands (the innermost frame that `is_user` accepts, or the graph node that is
being run), and nothing about tensors.
"""

from __future__ import annotations

import enum
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from inductoscope.protocol.report import Decision, DeviceSync, Place

_SUBJECT = "\0"

IsUser = Callable[[str], bool]


class Topic(enum.Enum):
    """What a note is about: something that only a card, or another machine, can decide."""

    PADDING = "pad_mm"
    SELF_TEST = "self-test"
    TRITON = "triton"
    VALUES = "values"
    RECORDING = "recording"


@dataclass(frozen=True)
class Note:
    """A limit of what is shown, as a sentence.

    `subject` is the part of the text that names what it is about, where the same may be said of several things.
    """

    topic: Topic
    text: str
    place: Place | None = None
    subject: str | None = None


def sentences(notes: Iterable[Note]) -> list[str]:
    """What the notes say, each thing once, of all its subjects together."""
    said: dict[str, dict[str, None]] = {}
    for note in notes:
        pattern = note.text if note.subject is None else note.text.replace(note.subject, _SUBJECT, 1)
        said.setdefault(pattern, {})[note.subject or ""] = None
    return [pattern.replace(_SUBJECT, ", ".join(subjects), 1) for pattern, subjects in said.items()]


@dataclass(frozen=True)
class UserLaunch:
    """A hand-written Triton kernel was launched, `count` times at this place.

    `source` is the kernel's own Python text, `defined` where it stands; `grid` is None where it cannot be told without
    running; `configs` counts the configurations that its autotuner would try on the card (1 without one).
    """

    name: str
    place: Place | None
    grid: tuple[int, ...] | None
    source: str | None
    defined: Place | None
    configs: int = 1
    count: int = 1


@dataclass
class Heard:
    """What was said while somebody listened, each time that it was."""

    notes: list[Note] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)


class Journal:
    """Collects records in the order of first occurrence; equal ones are counted."""

    def __init__(self, is_user: IsUser) -> None:
        self.is_user = is_user
        self._syncs: dict[tuple[Place, str, str | None], DeviceSync] = {}
        self._notes: dict[Note, None] = {}
        self._decisions: dict[Decision, None] = {}
        self._launches: dict[UserLaunch, int] = {}
        self._node: Place | None = None
        self._listeners: list[Heard] = []

    def sync(self, what: str, value: object, guessed: str | None = None) -> None:
        """The host looked at a device value.  `guessed` is the reason why `value` is not the real one."""
        place = self.place()
        if place is None:  # nobody's line: a tool reads values, not the program
            return
        text = _text(value)
        key = (place, what, guessed)
        before = self._syncs.get(key)
        if before is None:
            self._syncs[key] = DeviceSync(
                place.file, place.line, what, text, guessed is not None, count=1, reason=guessed
            )
        else:
            self._syncs[key] = replace(before, count=before.count + 1, value=_merged(before.value, text))

    def note(self, topic: Topic, text: str, place: Place | None = None, subject: str | None = None) -> None:
        """Remember a sentence once."""
        said = Note(topic, text, place, subject)
        self._notes.setdefault(said)
        for heard in self._listeners:
            heard.notes.append(said)

    @contextmanager
    def hearing(self) -> Iterator[Heard]:
        """Every note and decision of the block, also one that is remembered already."""
        heard = Heard()
        self._listeners.append(heard)
        try:
            yield heard
        finally:
            self._listeners = [one for one in self._listeners if one is not heard]

    def decide(self, decision: Decision) -> None:
        """Remember something that the card would have decided, once."""
        self._decisions.setdefault(decision)
        for heard in self._listeners:
            heard.decisions.append(decision)

    def launch(self, record: UserLaunch) -> None:
        """A hand-written kernel was launched; `record.count` is ignored."""
        self._launches[record] = self._launches.get(record, 0) + 1

    @property
    def syncs(self) -> tuple[DeviceSync, ...]:
        """Every place and sort of look once, with its count."""
        return tuple(self._syncs.values())

    @property
    def notes(self) -> tuple[Note, ...]:
        """Every note once."""
        return tuple(self._notes)

    @property
    def decisions(self) -> tuple[Decision, ...]:
        """Every decision once."""
        return tuple(self._decisions)

    @property
    def launches(self) -> tuple[UserLaunch, ...]:
        """Every kernel and place once, with its count."""
        return tuple(replace(record, count=count) for record, count in self._launches.items())

    def clear(self) -> None:
        """Forget everything."""
        self._syncs.clear()
        self._notes.clear()
        self._decisions.clear()
        self._launches.clear()

    @contextmanager
    def at(self, stack_trace: str | None) -> Iterator[None]:
        """While a graph node runs, its own line is the place: the generated code around it has none."""
        before, self._node = self._node, innermost_in_trace(stack_trace, self.is_user) or self._node
        try:
            yield
        finally:
            self._node = before

    def place(self) -> Place | None:
        """Where the user's program stands, or None when no user code is on the stack."""
        return self._node or innermost_frame(self.is_user)


def innermost_frame(is_user: IsUser) -> Place | None:
    """The innermost frame of the calling thread that `is_user` accepts."""
    frame = sys._getframe(1)
    while frame is not None:
        if is_user(frame.f_code.co_filename):
            return Place(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)
        frame = frame.f_back  # type: ignore[assignment]  # typeshed: None only at the outermost frame
    return None


_TRACE_LINE = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<function>\S+)')


def innermost_in_trace(stack_trace: str | None, is_user: IsUser) -> Place | None:
    """The last user frame of an FX node's `stack_trace` text."""
    found = None
    for match in _TRACE_LINE.finditer(stack_trace or ""):
        if is_user(match["file"]):
            found = Place(match["file"], int(match["line"]), match["function"])
    return found


def _text(value: object) -> str | None:
    """Numbers as text, floats to six digits; None for anything else."""
    if isinstance(value, float):
        return f"{value:.6g}"
    return str(value) if isinstance(value, bool | int | complex) else None


def _merged(before: str | None, now: str | None) -> str | None:
    """The different values seen at one place, the first three of them, as text."""
    if now is None or before is None:
        return before or now
    seen = before.split(", ")
    if now in seen or seen[-1] == "...":
        return before
    return before + (", ..." if len(seen) >= 3 else f", {now}")
