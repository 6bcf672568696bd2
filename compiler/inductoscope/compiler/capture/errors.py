"""A failed compilation in one sentence, on the user's line.

torch's exceptions say where in one of three ways: frames kept from tracing, a traceback in the message, or the frames
of the Python traceback.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterator

from inductoscope.compiler.capture.break_text import read_breaks
from inductoscope.compiler.capture.findings import finding
from inductoscope.compiler.capture.spans import line_span, span_of
from inductoscope.compiler.compat import dynamo
from inductoscope.compiler.usercode import Frame, UserCode
from inductoscope.protocol.messages import Target
from inductoscope.protocol.report import Finding, Related

_IN_MESSAGE = re.compile(r'^\s*File "(?P<file>.+?)", line (?P<line>\d+)(?:, in (?P<function>.+))?$', re.M)
_TAIL = re.compile(
    r"\n+\s*(User stack:|from user code:|Set TORCHDYNAMO_VERBOSE|For more details about|Developer debug context:"
    r"|While executing|Original traceback:|The following call raised)"
)
_LEAD = "Constraints violated"
_HEAD = re.compile(r"\A(?:backend='.*?' raised:\n)?(?:[A-Za-z_.]*(?:Error|Exception|Failed): )*")
_LONGEST = 400  # characters of torch's own text in a message; the log has all of it


def error_finding(error: BaseException, user_code: UserCode, target: Target) -> Finding:
    """The finding for an exception that compiling raised."""
    stack = _stack(error, user_code)
    chain = user_code.chain(stack)
    span = span_of(chain[-1]) if chain else line_span(target.file, target.line)
    text = read_breaks(getattr(error, "msg", None) or str(error))[0]
    return finding(
        "compile-error",
        span,
        f"{type(error).__name__}: {sentence(error)}",
        function=chain[-1].function if chain else None,
        related=tuple(Related(frame.file, frame.line, "called from here") for frame in chain[:-1]),
        hints=text.hints,
    )


def sentence(error: BaseException) -> str:
    """What torch says happened, without its stacks, ids and advice on logging."""
    text = _HEAD.sub("", _TAIL.split(str(error))[0])
    if text.startswith(_LEAD):
        # The first line names only the dimension; what is wrong with it stands in the list below.
        text = " ".join(line.strip().removeprefix("- ") for line in text.splitlines()[1:]) or text
    read = read_breaks(text)[0]
    text = f"{read.kind}: {read.explanation}" if read.explanation else text
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else text[:_LONGEST].rsplit(" ", 1)[0] + " …"


def _stack(error: BaseException, user_code: UserCode) -> tuple[Frame, ...]:
    """The first account of where `error` came from that has a frame of the user's."""
    for one in _chain(error):
        for frames in (dynamo.traced_frames(one), _told(str(one)), _raised_at(one)):
            if user_code.innermost(frames):
                return frames
    return ()


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The exception, then what it wraps and what it came from."""
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        one = waiting.pop(0)
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        waiting += [getattr(one, "inner_exception", None), one.__cause__, one.__context__]


def _told(message: str) -> tuple[Frame, ...]:
    return tuple(
        Frame(match["file"], int(match["line"]), *dynamo.original_name(match["function"] or "?")[:1])
        for match in _IN_MESSAGE.finditer(message)
    )


def _raised_at(error: BaseException) -> tuple[Frame, ...]:
    return tuple(
        Frame(frame.f_code.co_filename, line, dynamo.original_name(frame.f_code.co_name)[0])
        for frame, line in traceback.walk_tb(error.__traceback__)
    )
