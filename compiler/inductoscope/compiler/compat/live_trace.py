"""The structured trace of a program that somebody else started, and what torch keeps out of it.

Part of the recorder (`recorder/`), which loads this file by itself: standard library only, and no import of the
package.  Checked by running on torch 2.11 to 2.15:

- logger `torch.__trace` has every record as objects, `metadata` and `payload` (2.3 and later);
- a warning of `torch._dynamo.convert_frame` tells that a recompile limit was reached, and of which function (2.2);
- `convert_frame.add_skip_reason(reason, frame)` is called for each function that is left alone (2.13 and later);
- while a function is being compiled, a function of `torch._dynamo.convert_frame` has its frame in the local variable
  `frame` (2.11 to 2.15): so its arguments are known without anything that runs per call.
"""

from __future__ import annotations

import importlib
import linecache
import logging
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from types import CodeType, FrameType
from typing import Any, Protocol

_TRACE = "torch.__trace"
_CONVERT = "torch._dynamo.convert_frame"
_ENTRY = "torch._dynamo.eval_frame"
_CONTEXT = ("rank", "compiled_autograd_id", "frame_id", "frame_compile_id", "attempt")
_FUNCTION = re.compile(r"'(?P<name>.*)' \((?P<file>.*):(?P<line>\d+)\)")
_RESUMED = "torch_dynamo_resume_in_"


class Writer(Protocol):
    """Where records go."""

    def write(self, metadata: dict[str, Any], payload: str | None, place: str, at: float) -> None:
        """A record of torch's."""

    def tell(self, kind: str, fields: dict[str, Any], compile_id: dict[str, Any] | None = None) -> None:
        """A record of ours."""


Describe = Callable[[CodeType, Mapping[str, Any]], dict[str, Any]]
"""Tells a function and its arguments, given its code and its variables at its start."""


def attach(writer: Writer, describe: Describe) -> None:
    """Record from now on, until the process ends.  No other handler gets more: torch lets no record propagate."""
    harmless = _Harmless()
    logging.getLogger(_TRACE).addHandler(_Records(writer, describe, harmless))
    logging.getLogger(_CONVERT).addHandler(_Limits(writer, harmless))


class _Harmless:
    """A full disk, or a torch that is different, ends the recording and nothing else."""

    def __init__(self) -> None:
        self._failed = False

    def __call__(self, work: Callable[[], None]) -> None:
        if self._failed:
            return
        try:
            work()
        except Exception as error:
            self._failed = True
            sys.stderr.write(f"inductoscope: recording ends here: {error!r}\n")


class _Records(logging.Handler):
    """Writes every record.  Runs only while something is compiled, which is when torch makes records.

    A compiled program may make one while it runs: then Dynamo must not look at this handler, so it is disabled for
    Dynamo at the first record, when that is loaded in any case.
    """

    def __init__(self, writer: Writer, describe: Describe, harmless: _Harmless) -> None:
        super().__init__(logging.DEBUG)
        self._writer = writer
        self._describe = describe
        self._harmless = harmless
        self._take: Callable[[logging.LogRecord], None] | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """See `logging.Handler`."""
        if self._take is None:
            self._harmless(self._begin)
        if self._take is not None:
            self._take(record)

    def _begin(self) -> None:
        self._take = importlib.import_module("torch._dynamo").disable(self._record)
        _watch_skips(self._writer, self._harmless)

    def _record(self, record: logging.LogRecord) -> None:
        self._harmless(lambda: self._write(record))

    def _write(self, record: logging.LogRecord) -> None:
        metadata = getattr(record, "metadata", None)
        if not isinstance(metadata, dict):
            return
        payload = getattr(record, "payload", None)
        self._writer.write(metadata, payload, f"{record.filename}:{record.lineno}", record.created)
        if "dynamo_start" in metadata and not metadata.get("attempt"):
            told = _inputs(sys._getframe(), self._describe)
            if told is not None:
                numbers = {key: metadata[key] for key in _CONTEXT if key in metadata}
                self._writer.tell("inductoscope_inputs", told, numbers)


class _Limits(logging.Handler):
    """Writes down that Dynamo gives up on a function."""

    def __init__(self, writer: Writer, harmless: _Harmless) -> None:
        super().__init__(logging.WARNING)
        self._writer = writer
        self._harmless = harmless

    def emit(self, record: logging.LogRecord) -> None:
        """See `logging.Handler`."""
        self._harmless(lambda: self._write(record))

    def _write(self, record: logging.LogRecord) -> None:
        arguments = record.args
        if "torch._dynamo hit config." not in str(record.msg) or not isinstance(arguments, tuple) or len(arguments) < 3:
            return
        match = _FUNCTION.fullmatch(str(arguments[2]))
        if match is not None:
            fields = {"limit": str(arguments[1]), "setting": str(arguments[0]), "function": match["name"]}
            self._writer.tell("inductoscope_limit", {**fields, "file": match["file"], "line": int(match["line"])})


def _watch_skips(writer: Writer, harmless: _Harmless) -> None:
    convert = sys.modules.get(_CONVERT)
    original = getattr(convert, "add_skip_reason", None)
    if original is None:
        return

    def add_skip_reason(reason: str, frame: Any, *args: Any, **kwargs: Any) -> Any:
        harmless(lambda: _tell_skip(writer, reason, frame.f_code))
        return original(reason, frame, *args, **kwargs)

    setattr(convert, "add_skip_reason", add_skip_reason)  # noqa: B010  # torch's module is untyped


def _tell_skip(writer: Writer, reason: str, code: CodeType) -> None:
    """Only of the program's own functions: Dynamo leaves thousands of others alone by rule."""
    if code.co_filename.startswith("<") or "site-packages" in code.co_filename or sys.prefix in code.co_filename:
        return
    if code.co_filename.startswith((sys.base_prefix, sys.exec_prefix)):
        return
    short = str(reason).partition("\n")[0].partition(" `torch.compile` will skip the frame")[0]
    fields = {"function": code.co_name, "file": code.co_filename, "line": code.co_firstlineno, "reason": short}
    writer.tell("inductoscope_skipped", fields)


def _inputs(here: FrameType, describe: Describe) -> dict[str, Any] | None:
    """The arguments of the function that is about to be compiled, and the line that called it from outside."""
    frames = list(_above(here))
    convert = [frame for frame in frames if frame.f_globals.get("__name__") == _CONVERT]
    compiled = next((found for frame in convert if (found := _compiled(frame)) is not None), None)
    if compiled is None or compiled.f_code.co_name.startswith(_RESUMED):
        return None
    code, variables = compiled.f_code, compiled.f_locals
    told = {"file": code.co_filename, "line": code.co_firstlineno, **describe(code, variables)}
    called = _called(frames[frames.index(convert[-1]) + 1 :])
    return {**told, "called": called} if called is not None else told


def _compiled(frame: FrameType) -> Any:
    found = frame.f_locals.get("frame")
    return found if isinstance(getattr(found, "f_code", None), CodeType) else None


def _called(above: list[FrameType]) -> dict[str, Any] | None:
    """The first line outside of torch above the outermost entry into compiled code."""
    entries = [at for at, frame in enumerate(above) if frame.f_globals.get("__name__") == _ENTRY]
    for frame in above[entries[-1] + 1 if entries else 0 :]:
        if str(frame.f_globals.get("__name__")).partition(".")[0] != "torch":
            file, line = frame.f_code.co_filename, frame.f_lineno
            text = linecache.getline(file, line, frame.f_globals).strip()
            return {"file": file, "line": line, "function": frame.f_code.co_name, "text": text}
    return None


def _above(frame: FrameType) -> Iterator[FrameType]:
    at: FrameType | None = frame
    while at is not None:
        yield at
        at = at.f_back
