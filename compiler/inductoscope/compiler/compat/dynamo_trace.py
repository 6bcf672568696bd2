"""The structured trace: what torch.compile writes down about itself, as records.

Logger `torch.__trace`, 2.3 and later; torch builds records only while the logger has a handler.  Record names and
fields were checked by running torch 2.11 to 2.15.
"""

from __future__ import annotations

import contextlib
import logging
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from inductoscope.compiler.compat import troubles
from inductoscope.compiler.compat.dynamo_stacks import CodePlace, interned, original_name

logger = logging.getLogger(__name__)

_TRACE_LOGGER = "torch.__trace"
_LIMIT_LOGGER = "torch._dynamo.convert_frame"
_CONTEXT_KEYS = frozenset(
    ("rank", "frame_id", "frame_compile_id", "attempt", "compiled_autograd_id", "has_payload", "stack", "subgraph_name")
)


@dataclass(frozen=True)
class Record:
    """One record of the structured trace: its key, or the name of an artifact; its fields; its payload.

    `compile_id` is torch's `frame/compile`, None outside of a compilation.
    """

    name: str
    fields: Mapping[str, Any]
    payload: str
    compile_id: str | None
    attempt: int


@contextlib.contextmanager
def trace_records(callback: Callable[[Record], None]) -> Iterator[None]:
    """Hand every record of the structured trace to `callback` while the block runs."""
    handler = _TraceHandler(callback)
    trace = logging.getLogger(_TRACE_LOGGER)
    trace.addHandler(handler)
    try:
        yield
    finally:
        trace.removeHandler(handler)


@contextlib.contextmanager
def recompile_limits(callback: Callable[[str, int, CodePlace], None]) -> Iterator[None]:
    """Tell `callback` the name of the limit, its value and the function, when Dynamo gives up on a function.

    torch only logs this: a warning of `torch._dynamo.convert_frame` whose arguments are the name, the value, the
    function as text and the last reason (2.2 to 2.15).
    """
    handler = _LimitHandler(callback)
    log = logging.getLogger(_LIMIT_LOGGER)
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)


def started_function(record: Record) -> CodePlace | None:
    """The function that a `dynamo_start` record is about: the last frame of its stack."""
    stack = record.fields.get("stack") or ()
    last = stack[-1] if stack else {}
    file = interned(last.get("filename", -1))
    if file is None:
        return None
    function, resumed = original_name(str(last.get("name")))
    return CodePlace(file, int(last.get("line") or 1), function, resumed)


def failure() -> BaseException | None:
    """The exception that a `dynamo_error` record is about: torch writes it while handling the exception."""
    return sys.exc_info()[1]


@contextlib.contextmanager
def harmless(what: str) -> Iterator[None]:
    """Keep an error of ours away from the program: in the log, and as a note in the report."""
    try:
        yield
    except Exception as error:
        troubles.failed(logger, what, error)


class _TraceHandler(logging.Handler):
    def __init__(self, callback: Callable[[Record], None]) -> None:
        super().__init__(logging.DEBUG)
        self._callback = callback

    @torch.compiler.disable
    def emit(self, record: logging.LogRecord) -> None:
        with harmless("a trace record"):
            if found := _read_record(record):
                self._callback(found)


def _read_record(record: logging.LogRecord) -> Record | None:
    metadata = getattr(record, "metadata", None)
    if not isinstance(metadata, dict):
        return None
    key = next((key for key in metadata if key not in _CONTEXT_KEYS), None)
    if key is None or not isinstance(metadata[key], dict):
        return None
    fields = metadata[key]
    name = str(fields.get("name")) if key == "artifact" else key
    frame_id, nth = metadata.get("frame_id"), metadata.get("frame_compile_id")
    return Record(
        name=name,
        fields=fields,
        payload=getattr(record, "payload", None) or "",
        compile_id=f"{frame_id}/{nth}" if frame_id is not None else None,
        attempt=int(metadata.get("attempt") or 0),
    )


class _LimitHandler(logging.Handler):
    _FUNCTION = re.compile(r"'(?P<name>.*)' \((?P<file>.*):(?P<line>\d+)\)")

    def __init__(self, callback: Callable[[str, int, CodePlace], None]) -> None:
        super().__init__(logging.WARNING)
        self._callback = callback

    @torch.compiler.disable
    def emit(self, record: logging.LogRecord) -> None:
        with harmless("a recompile limit"):
            if "torch._dynamo hit config." not in str(record.msg) or not isinstance(record.args, tuple):
                return
            limit, value, function = record.args[:3]
            if match := self._FUNCTION.fullmatch(str(function)):
                name, resumed = original_name(match["name"])
                place = CodePlace(match["file"], int(match["line"]), name, resumed)
                self._callback(str(limit), int(str(value)), place)
