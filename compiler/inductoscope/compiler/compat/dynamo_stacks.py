"""Where Dynamo is: code objects, Python stacks and traced frames as places in source.

Checked by running on torch 2.11 to 2.15.
"""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any

import torch

from inductoscope.compiler.usercode import Frame

_DYNAMO = "torch._dynamo."
_RESUMED = re.compile(r"torch_dynamo_resume_in_(.+)_at_\d+")
_STACK_LINE = re.compile(r'^ *File "(?P<file>.+)", line (?P<line>\d+), in (?P<function>.+)$', re.M)


@dataclass(frozen=True)
class CodePlace:
    """The start of a function, or the point where the rest of it resumes after a graph break."""

    file: str
    line: int
    function: str
    resumed: bool = False


def code_place(code: CodeType) -> CodePlace:
    """Where the function of a code object starts; for the rest of a function after a break, where it resumes."""
    function, resumed = original_name(code.co_name)
    return CodePlace(code.co_filename, code.co_firstlineno, function, resumed)


def entered(code: CodeType | None) -> tuple[Frame, ...]:
    """A function at its start, as the only frame of a stack."""
    if code is None:
        return ()
    place = code_place(code)
    return (Frame(place.file, place.line, place.function, resumed=place.resumed),)


def original_name(name: str) -> tuple[str, bool]:
    """The user's name for a function, and whether `name` is Dynamo's for what follows a graph break in it."""
    resumed = False
    while match := _RESUMED.fullmatch(name):
        name, resumed = match.group(1), True
    return name, resumed


def compile_id() -> str | None:
    """torch's id of the compilation under way, such as `0/0`.  `CompileContext` is the same in 2.11 to 2.15."""
    found = torch._guards.CompileContext.current_compile_id()
    return str(found) if found is not None else None


def in_backend() -> bool:
    """Whether a backend is at work below the calling function, so that Dynamo is not tracing user code now."""
    return any(frame.f_code.co_name == "call_user_compiler" for frame in _stack())


def frames_above() -> tuple[Frame, ...]:
    """The calls between the outermost compiled region's entry and the frame that Dynamo is converting.

    Outermost first; frames of Dynamo itself are left out.  What called the compiled function is not part of it.
    """
    below = itertools.dropwhile(lambda frame: not _is_convert(frame), _stack())
    above = [frame for frame in below if not _is_convert(frame)]
    entries = [at for at, frame in enumerate(above) if _is_entry(frame)]
    inside = above[: entries[-1]] if entries else above
    return tuple(_live_frame(frame) for frame in reversed(inside) if not _is_entry(frame))


def traced_frames(error: BaseException) -> tuple[Frame, ...]:
    """The frames that Dynamo was tracing when it raised `error`, outermost first (`real_stack` in 2.11 to 2.15)."""
    return plain_frames(getattr(error, "real_stack", None) or ())


def plain_frames(summaries: Any) -> tuple[Frame, ...]:
    """The frames of a `traceback.StackSummary`."""
    return tuple(_plain_frame(summary) for summary in summaries)


def written_frames(text: str) -> tuple[Frame, ...]:
    """The frames of a stack that torch wrote out as a traceback, without columns."""
    return tuple(Frame(m["file"], int(m["line"]), original_name(m["function"])[0]) for m in _STACK_LINE.finditer(text))


def recorded_frames(stack: Iterable[Mapping[str, Any]]) -> tuple[Frame, ...]:
    """The frames of a stack in the structured trace, where file names are numbers."""
    return tuple(
        Frame(
            file=interned(entry.get("filename", -1)) or "<unknown>",
            line=int(entry.get("line") or 1),
            function=original_name(str(entry.get("name")))[0],
        )
        for entry in stack
    )


def interned(number: int) -> str | None:
    """The file name behind a number in stacks of the structured trace (`structured.INTERN_TABLE`, 2.3 to 2.15)."""
    table: Mapping[str, int] = getattr(torch._logging.structured, "INTERN_TABLE", {})
    return next((text for text, known in table.items() if known == number), None)


def _plain_frame(summary: Any) -> Frame:
    function, resumed = original_name(summary.name)
    return Frame(
        file=summary.filename,
        line=summary.lineno or 1,
        function=function,
        column=getattr(summary, "colno", None),
        end_column=getattr(summary, "end_colno", None),
        end_line=getattr(summary, "end_lineno", None),
        resumed=resumed,
    )


def _live_frame(frame: FrameType) -> Frame:
    code = frame.f_code
    function, resumed = original_name(code.co_name)
    end_line = column = end_column = None
    if sys.version_info >= (3, 11) and frame.f_lasti >= 0:
        positions = next(itertools.islice(code.co_positions(), frame.f_lasti // 2, None), None)
        if positions and positions[0] == frame.f_lineno:
            _, end_line, column, end_column = positions
    return Frame(code.co_filename, frame.f_lineno, function, column, end_column, end_line, resumed)


def _stack() -> Iterator[FrameType]:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        yield frame
        frame = frame.f_back


def _is_convert(frame: FrameType) -> bool:
    return frame.f_globals.get("__name__") == _DYNAMO + "convert_frame"


def _is_entry(frame: FrameType) -> bool:
    return frame.f_globals.get("__name__") == _DYNAMO + "eval_frame"
