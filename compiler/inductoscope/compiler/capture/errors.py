"""A failed compilation in one sentence, on the user's line.

torch's exceptions say where in one of two ways: frames kept from tracing, or a traceback in the message.  The Python
traceback is of no use: it ends where the compiled function was called.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from inductoscope.compiler.capture.findings import finding
from inductoscope.compiler.capture.spans import span_of
from inductoscope.compiler.compat import dynamo_breaks, dynamo_stacks
from inductoscope.compiler.marks import line_span
from inductoscope.compiler.usercode import Frame, UserCode
from inductoscope.protocol.report import Finding, Place, Related, Severity
from inductoscope.protocol.torch_texts.breaks import ended, read_breaks

_IN_MESSAGE = re.compile(r'^\s*File "(?P<file>.+?)", line (?P<line>\d+)(?:, in (?P<function>.+))?$', re.M)
_TAIL = re.compile(
    r"\n+\s*(User stack:|from user code:|Set TORCHDYNAMO_VERBOSE|For more details about|Developer debug context:"
    r"|While executing|Original traceback:|The following call raised)"
)
_LEAD = "Constraints violated"
_HEAD = re.compile(r"\A(?:backend='.*?' raised:\n)?(?:[A-Za-z_.]*(?:Error|Exception|Failed): )*")
_NO_BREAK_ALLOWED = "fullgraph=True or error_on_graph_break(True) allows no break, so it is an error."
_LONGEST = 400  # characters of torch's own text in a message; the log has all of it


def error_finding(error: BaseException, user_code: UserCode, fallback: Place) -> Finding:
    """The finding for an exception that compiling raised; it is at `fallback` where torch tells no line."""
    if dynamo_breaks.is_graph_break(error):
        what = f"Graph break: {sentence(error)} {_NO_BREAK_ALLOWED}"
        return _finding("graph-break", what, error, user_code, fallback, Severity.ERROR)
    what = f"{type(error).__name__}: {sentence(error)}"
    if dynamo_breaks.is_recompile_limit(error):
        what += " The recompile limit was reached, and fullgraph=True lets nothing run uncompiled."
    return _finding("compile-error", what, error, user_code, fallback)


def suppressed_finding(error: BaseException, user_code: UserCode, fallback: Place) -> Finding:
    """The finding for an error that did not end the program: the function went on uncompiled."""
    what = f"Compiling failed here, so the function runs uncompiled. {type(error).__name__}: {sentence(error)}"
    return _finding("not-compiled", what, error, user_code, fallback)


def _finding(
    code: str,
    message: str,
    error: BaseException,
    user_code: UserCode,
    fallback: Place,
    severity: Severity | None = None,
) -> Finding:
    chain = user_code.chain(_stack(error, user_code))
    span = span_of(chain[-1]) if chain else line_span(fallback.file, fallback.line)
    text = read_breaks(dynamo_breaks.message_of(error))[0]
    identifier = dynamo_breaks.break_id(text.kind)
    return finding(
        code,
        span,
        message,
        severity=severity,
        id=identifier,
        link=dynamo_breaks.break_link(identifier) if identifier else None,
        function=chain[-1].function if chain else fallback.function,
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
    text = ended(text)
    return text if len(text) <= _LONGEST else text[:_LONGEST].rsplit(" ", 1)[0] + " …"


def _stack(error: BaseException, user_code: UserCode) -> tuple[Frame, ...]:
    """The first account of where `error` came from that has a frame of the user's."""
    for one in _chain(error):
        for frames in (dynamo_stacks.traced_frames(one), _told(str(one))):
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
        Frame(match["file"], int(match["line"]), *dynamo_stacks.original_name(match["function"] or "?")[:1])
        for match in _IN_MESSAGE.finditer(message)
    )
