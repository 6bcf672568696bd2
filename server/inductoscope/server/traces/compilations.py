"""What a trace tells of one compilation, as it was gathered; texts stay in the file until somebody asks."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from inductoscope.server.traces.records import Payload

_RESUMED = re.compile(r"torch_dynamo_resume_in_(.+)_at_\d+$")
_INSTALLED = re.compile(r"[/\\](?:site|dist)-packages[/\\]|[/\\]lib[/\\]python\d[^/\\]*[/\\]|[/\\]torch[/\\]_\w+[/\\]")
_ENTRIES = ("torch/_dynamo/eval_frame.py", "torch/_dynamo/external_utils.py")


@dataclass(frozen=True)
class Frame:
    """A line of a stack.  `text` is the source of the line as the trace has it; empty where it has none."""

    file: str
    line: int
    function: str
    text: str = ""
    resumed: bool = False

    @property
    def is_user(self) -> bool:
        """Whether the file is a program's, judged by its path alone: the trace may be of another machine."""
        return is_user(self.file)

    @property
    def is_entry(self) -> bool:
        """Whether a compiled function was called here."""
        return self.file.replace("\\", "/").endswith(_ENTRIES)


@cache
def is_user(file: str) -> bool:
    """Whether a path is a program's own: neither an installed package's, nor Python's, nor generated."""
    return bool(file) and not file.startswith("<") and _INSTALLED.search(file) is None and "torchinductor_" not in file


def original_name(name: str) -> tuple[str, bool]:
    """The program's name for a function, and whether `name` is Dynamo's for what follows a graph break in it."""
    resumed = False
    while match := _RESUMED.match(name):
        name, resumed = match[1], True
    return name, resumed


@dataclass(frozen=True)
class CacheEvent:
    """One answer of a compile cache: `hit`, `miss` or `bypass`; what it said lies in the payload."""

    cache: str
    result: str
    payload: Payload

    def details(self) -> dict[str, Any]:
        """What the cache said, empty where it cannot be read."""
        try:
            data = json.loads(self.payload.text())
        except ValueError:
            return {}
        return data if isinstance(data, dict) else {}


@dataclass(frozen=True)
class Text:
    """A text of a compilation: an artifact's, a graph's, generated code."""

    name: str
    attempt: int
    payload: Payload


@dataclass(frozen=True)
class Pinned:
    """A size that became one number; `frames` are the user's."""

    source: str
    value: str
    reason: str
    frames: tuple[Frame, ...]


@dataclass(frozen=True)
class Symbol:
    """A size that may differ: torch's symbol, what it stands for, its value in this call, and its range."""

    symbol: str
    source: str
    value: str
    range: str


@dataclass
class Compilation:
    """One compilation of a function; torch's id may come again after a reset, `order` does not.

    `of` is the function where this compilation has no start of its own, because Dynamo gave up before.
    """

    id: str
    order: int
    stack: tuple[Frame, ...] = ()
    attempts: int = 0
    metrics: dict[str, Any] = field(default_factory=dict)
    backward: dict[str, Any] = field(default_factory=dict)
    reasons: Payload | None = None
    error: Payload | None = None
    guards: Payload | None = None
    breaks: list[Text] = field(default_factory=list)
    graphs: list[Text] = field(default_factory=list)
    codes: list[Text] = field(default_factory=list)
    texts: list[Text] = field(default_factory=list)
    caches: list[CacheEvent] = field(default_factory=list)
    pinned: list[Pinned] = field(default_factory=list)
    symbols: list[Symbol] = field(default_factory=list)
    collectives: list[str] = field(default_factory=list)
    splits: int = 0
    inputs: list[dict[str, Any]] = field(default_factory=list)
    clock: str = ""
    of: Frame | None = None

    @property
    def frame_number(self) -> str:
        """torch's number of the function, `0` in `0/1`; of compiled autograd `!1`."""
        return self.id.rpartition("/")[0] or self.id

    @property
    def nth(self) -> int:
        """Which compilation of its function this is, from 0."""
        last = self.id.rpartition("/")[2]
        return int(last) if last.isdecimal() else 0

    @property
    def function(self) -> Frame:
        """Where the function starts; for the rest of one after a graph break, where that resumes."""
        if self.stack and self.id.startswith("!"):
            return replace(self.stack[-1], function="compiled autograd")  # torch names it like any forward
        if self.stack:
            return self.stack[-1]
        if self.of is not None:
            return self.of
        name, resumed = original_name(str(self.metrics.get("co_name") or "?"))
        line = self.metrics.get("co_firstlineno")
        file = str(self.metrics.get("co_filename") or "<unknown>")
        return Frame(file, line if isinstance(line, int) else 1, name, resumed=resumed)

    @property
    def gave_up(self) -> bool:
        """Whether Dynamo found that one more version would be too many: it has reasons to compile and did not begin."""
        return self.reasons is not None and not self.stack and bool(self.metrics)

    @property
    def call(self) -> Frame | None:
        """The user's line that called the compiled function from outside, or a line above it.

        torch leaves out the last callers of a decorated function; a recording of Inductoscope's has them.
        """
        for fields in self.inputs:
            if isinstance(called := fields.get("called"), dict):
                file, function, text = (str(called.get(name) or "") for name in ("file", "function", "text"))
                return Frame(file, int(called.get("line") or 1), function, text)
        entries = [at for at, frame in enumerate(self.stack) if frame.is_entry]
        above = self.stack[: entries[0] if entries else max(len(self.stack) - 1, 0)]
        return next((frame for frame in reversed(above) if frame.is_user), None)

    @property
    def is_call_exact(self) -> bool:
        """Whether `call` is the calling line itself."""
        return any("called" in fields for fields in self.inputs) or any(frame.is_entry for frame in self.stack)

    def microseconds(self, name: str) -> float:
        """A time in the metrics, forward and backward together, 0 where there is none."""
        found = (part.get(name) for part in (self.metrics, self.backward))
        return float(sum(value for value in found if isinstance(value, int | float)))
