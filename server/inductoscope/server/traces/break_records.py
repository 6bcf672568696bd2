"""Graph breaks of a trace: what torch wrote in `dynamo_graph_break_reason`, and one root cause for what it tells often.

The layout is that of `torch/_dynamo/symbolic_convert.py`, 2.6 to 2.15: where, the reason, and the user's stack as a
traceback.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from inductoscope.protocol.report import GraphBreak, Outcome, Place
from inductoscope.protocol.torch_texts.breaks import BreakText, outcome_of, read_breaks
from inductoscope.server.traces.compilations import Compilation, Frame, original_name
from inductoscope.server.traces.places import Places

_REASON = re.compile(r"^(?:Graph Break )?Reason: ", re.M)
_STACK = re.compile(r"^User code traceback:\n", re.M)
_FRAME = re.compile(
    r'^ *File "(?P<file>[^"\n]+)", line (?P<line>\d+), in (?P<function>[^\n]+)\n'
    r'(?: {4}(?! *File ")(?P<text>[^\n]*))?',
    re.M,
)
_PAGE = re.compile(r"https://\S+/gb/gb(?P<number>\d+)\.html")
_WHERE = re.compile(r"^Graph break in user code at (?P<file>.+):(?P<line>\d+)$", re.M)
_HANDLED = ("Encountered graph break ", "Failed to handle graph break ")  # a line of their own before the reason
_ORDER = tuple(Outcome)  # from mild to worst


@dataclass(frozen=True)
class BreakReport:
    """One report of a break: torch's words, the stack (outermost first), and what followed."""

    texts: tuple[BreakText, ...]
    code: str
    link: str | None
    frames: tuple[Frame, ...]
    outcome: Outcome


def frames_in(text: str) -> tuple[Frame, ...]:
    """The frames of a traceback in a text, with their source lines."""
    return tuple(_frame(match) for match in _FRAME.finditer(text))


def _frame(match: re.Match[str]) -> Frame:
    function, resumed = original_name(match["function"].strip())
    return Frame(match["file"], int(match["line"]), function, match["text"] or "", resumed)


def read_report(payload: str) -> BreakReport:
    """Read one record."""
    start = _REASON.search(payload)
    head, stack = payload[: start.start()] if start else "", payload[start.end() :] if start else payload
    parts = _STACK.split(stack, maxsplit=1)
    reason, trace = parts[0], parts[1] if len(parts) > 1 else ""
    outcome = outcome_of(reason)
    message = reason.partition("\n\n")[2] or reason if reason.startswith(_HANDLED) else reason
    page = _PAGE.search(message)
    frames = frames_in(trace.partition("\nTraceback (most recent call last):")[0])
    where = _WHERE.search(head)
    if not frames and where is not None:
        frames = (Frame(where["file"], int(where["line"]), "?"),)
    texts = read_breaks(message)
    return BreakReport(texts, f"GB{page['number']}" if page else "", page[0] if page else None, frames, outcome)


def breaks_of(compilations: Iterable[Compilation], places: Places) -> tuple[GraphBreak, ...]:
    """One for each root cause: the same type on the same line, with the worst of what followed."""
    return merged(found for one in compilations for found in _of(one, places))


def merged(found: Iterable[GraphBreak]) -> tuple[GraphBreak, ...]:
    """Breaks with one root cause as one, with their counts added up."""
    causes: dict[tuple[object, ...], GraphBreak] = {}
    for one in found:
        key = (one.file, one.line, one.code, one.reason, one.inner)
        before = causes.get(key)
        causes[key] = one if before is None else _both(before, one)
    return tuple(causes.values())


def _both(first: GraphBreak, second: GraphBreak) -> GraphBreak:
    frames = max(first.frames, second.frames, key=len)
    outcome = max(first.outcome, second.outcome, key=_ORDER.index)
    return replace(first, frames=frames, outcome=outcome, count=first.count + second.count)


def _of(one: Compilation, places: Places) -> Iterator[GraphBreak]:
    """A report in a compilation that was split already is torch's failing to handle the break before it."""
    last: GraphBreak | None = None
    for text in one.breaks:
        report = read_report(text.payload.text())
        if last is not None and report.outcome is not Outcome.SPLIT:
            last = replace(last, outcome=max(last.outcome, report.outcome, key=_ORDER.index), count=last.count + 1)
            continue
        if last is not None:
            yield last
        last = _graph_break(report, one, places)
    if last is not None:
        yield last


def _graph_break(report: BreakReport, one: Compilation, places: Places) -> GraphBreak:
    user = _inside(one, [frame for frame in report.frames if frame.is_user])
    innermost = report.frames[-1] if report.frames else None
    at = places.of(user[-1]) if user else places.function(one.function)
    inner = (
        None if innermost is None or innermost.is_user else Place(innermost.file, innermost.line, innermost.function)
    )
    column, end_column = places.columns(at)
    cause, *consequences = report.texts
    then = [f"Handling it led to another: {later.kind}." for later in consequences]
    return GraphBreak(
        file=at.file,
        line=at.line,
        end_line=at.line,
        column=column,
        end_column=end_column,
        code=report.code,
        reason=cause.kind,
        explanation="\n".join([cause.explanation, *then]) if then else cause.explanation,
        hints=cause.hints,
        link=report.link,
        frames=tuple(map(places.of, user)),
        outcome=report.outcome,
        inner=inner,
    )


def _inside(one: Compilation, user: list[Frame]) -> list[Frame]:
    """The frames from the compiled function on: what called it is the same for all that happens in it."""
    above = [(frame.file, frame.line) for frame in one.stack[:-1] if frame.is_user]
    same = 0
    while same < min(len(above), len(user) - 1) and (user[same].file, user[same].line) == above[same]:
        same += 1
    return user[same:]
