"""Frames that Dynamo leaves alone, and why.

From 2.13 on `convert_frame.add_skip_reason(reason, frame)` is called for each.  Before, Dynamo only writes some of them
to its log at level DEBUG; functions without any tensor are not among those.
"""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any

import torch

from inductoscope.compiler.compat.dynamo_trace import harmless
from inductoscope.compiler.compat.inductor import Point, replaced
from inductoscope.compiler.compat.versions import SkippedFrames, adapter_for

_CONVERT = "torch._dynamo.convert_frame"
SKIP = Point(_CONVERT, "add_skip_reason", "frames that were not compiled, and why (2.13 and later)", required=False)

ALL_POINTS: tuple[Point, ...] = (SKIP,)

_BEFORE_TRACING = "skipping: %s (reason: %s, file: %s)"
_WHILE_TRACING = "Received signal to skip frame"


@dataclass(frozen=True)
class SkipEvent:
    """A frame that Dynamo left alone."""

    code: CodeType
    reason: str


def skipped_frames(callback: Callable[[SkipEvent], None]) -> contextlib.AbstractContextManager[None]:
    """Hand every frame that Dynamo skips to `callback`."""
    if adapter_for(torch.__version__).skipped_frames is SkippedFrames.LOGS:
        return _from_log(callback)
    return _from_calls(callback)


def _from_calls(callback: Callable[[SkipEvent], None]) -> contextlib.AbstractContextManager[None]:
    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        def add_skip_reason(reason: str, frame: Any, *args: Any, **kwargs: Any) -> Any:
            with harmless("a skipped frame"):
                callback(SkipEvent(frame.f_code, str(reason)))
            return original(reason, frame, *args, **kwargs)

        return add_skip_reason

    return replaced(SKIP, make)


@contextlib.contextmanager
def _from_log(callback: Callable[[SkipEvent], None]) -> Iterator[None]:
    log = logging.getLogger(_CONVERT)
    level = log.level
    reader = _Reader(callback, shown_from=log.getEffectiveLevel())
    log.filters.insert(0, reader)  # first: a reader that is there already keeps records from those after it
    log.setLevel(logging.DEBUG)
    try:
        yield
    finally:
        log.setLevel(level)
        log.removeFilter(reader)


class _Reader(logging.Filter):
    """Reads the records of level DEBUG, and lets those through that would have been shown without it."""

    def __init__(self, callback: Callable[[SkipEvent], None], shown_from: int) -> None:
        super().__init__()
        self._callback = callback
        self._shown_from = shown_from

    @torch.compiler.disable
    def filter(self, record: logging.LogRecord) -> bool:
        with harmless("a skipped frame"):
            event = _event(record) if record.levelno == logging.DEBUG else None
            if event is not None:
                self._callback(event)
        return record.levelno >= self._shown_from


def _event(record: logging.LogRecord) -> SkipEvent | None:
    """The frame that a record is about: the function that logs it has it in a local variable."""
    text, args = str(record.msg), record.args
    logging_from = _logging_from()
    if not isinstance(args, tuple) or logging_from is None:
        return None
    if text == _BEFORE_TRACING:
        return SkipEvent(logging_from.f_locals["frame"].f_code, str(args[1]))
    if text.startswith(_WHILE_TRACING):
        return SkipEvent(logging_from.f_locals["code"], f"Dynamo decided to skip the frame while tracing: {args[0]}")
    return None


def _logging_from() -> FrameType | None:
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_globals.get("__name__") != _CONVERT:
        frame = frame.f_back
    return frame
