"""Graph breaks: one entry a root cause, on the user's line, however often Dynamo met it.

Dynamo tells a break first for the caller with the helper inlined, then again for the helper by itself, and once more
when handling it fails.  All of these are one thing to the user, with the worst of what followed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from inductoscope.compiler.capture.findings import finding
from inductoscope.compiler.capture.spans import span_of
from inductoscope.compiler.compat import dynamo, dynamo_breaks, dynamo_stacks
from inductoscope.compiler.marks import line_span
from inductoscope.compiler.usercode import Frame, UserCode
from inductoscope.protocol.messages import Target
from inductoscope.protocol.report import Finding, GraphBreak, Outcome, Place, Related, Span
from inductoscope.protocol.torch_texts.breaks import BreakText, ended, outcome_of, read_breaks

_ORDER = tuple(Outcome)  # from mild to worst
_FOLLOWED = {
    Outcome.SPLIT: "The code before it is compiled by itself, and compiling begins anew after it.",
    Outcome.REST_EAGER: "What comes before it is compiled; the rest of {function} runs uncompiled.",
    Outcome.FUNCTION_EAGER: "Nothing of {function} is compiled.",
}


@dataclass(frozen=True)
class Key:
    """What makes two reports of a break the same root cause: its type and where it is."""

    kind: str
    span: Span
    inner: Place | None


@dataclass
class _Entry:
    """A root cause, and what is known of it so far."""

    text: BreakText
    span: Span
    inner: Place | None
    chain: tuple[Frame, ...]
    outcome: Outcome
    compiled: str  # the function that the outcome is about
    fullgraph: bool = False
    count: int = 0
    callers: list[Place] = field(default_factory=list)
    consequences: list[BreakText] = field(default_factory=list)

    def meet(
        self, outcome: Outcome, compiled: str, chain: tuple[Frame, ...], consequences: tuple[BreakText, ...]
    ) -> None:
        self.count += 1
        if _ORDER.index(outcome) > _ORDER.index(self.outcome):
            self.outcome, self.compiled = outcome, compiled
        self.callers += [frame.place for frame in chain[:-1] if not self._knows(frame)]
        known = {text.kind for text in (self.text, *self.consequences)}
        self.consequences += [text for text in consequences if text.kind not in known]
        if len(chain) > len(self.chain):
            self.chain = chain

    def _knows(self, frame: Frame) -> bool:
        return any((place.file, place.line) == (frame.file, frame.line) for place in self.callers)


class BreakLog:
    """Collects graph breaks as Dynamo meets them."""

    def __init__(self, user_code: UserCode, target: Target) -> None:
        self._user_code = user_code
        self._target = target
        self._entries: dict[Key, _Entry] = {}
        self._last_in_frame: dict[str, Key] = {}

    def meet(self, event: dynamo.BreakEvent) -> Key:
        """Take in one report of a break; returns the key of its root cause."""
        texts = read_breaks(event.message)
        outcome = outcome_of(event.reason)
        earlier = self._last_in_frame.get(event.compile_id)
        if earlier and outcome is not Outcome.SPLIT:
            # This frame was already split at a break.  Tracing ends there, so this is the attempt to handle it failing.
            self._entries[earlier].meet(outcome, event.function, (), texts)
            return earlier
        key = self._add(texts, event.stack, outcome, event.function)
        self._last_in_frame[event.compile_id] = key
        return key

    def forbid(self, error: BaseException) -> None:
        """Take in a break that `fullgraph=True` turned into an error.  Its finding is the error's."""
        texts = read_breaks(dynamo_breaks.message_of(error))
        key = self._add(texts, dynamo_stacks.traced_frames(error), Outcome.FUNCTION_EAGER, "?")
        self._entries[key].fullgraph = True

    def lines(self) -> set[tuple[str, int]]:
        """The lines that have a break."""
        return {(entry.span.file, entry.span.line) for entry in self._entries.values()}

    def breaks(self) -> tuple[GraphBreak, ...]:
        """Every root cause."""
        return tuple(_graph_break(entry) for entry in self._entries.values())

    def findings(self) -> tuple[Finding, ...]:
        """One finding a root cause that did not end as an error."""
        return tuple(self.finding(key) for key, entry in self._entries.items() if not entry.fullgraph)

    def finding(self, key: Key) -> Finding:
        """What is known by now of one root cause."""
        return _finding(self._entries[key])

    def _add(self, texts: tuple[BreakText, ...], stack: tuple[Frame, ...], outcome: Outcome, compiled: str) -> Key:
        chain = self._user_code.chain(stack)
        user = chain[-1] if chain else None
        innermost = stack[-1] if stack else None
        inner = innermost.place if innermost and (user is None or user.place != innermost.place) else None
        span = self._span(user, inner)
        key = Key(texts[0].kind, span, inner)
        entry = self._entries.setdefault(key, _Entry(texts[0], span, inner, chain, outcome, compiled))
        entry.meet(outcome, compiled, chain, texts[1:])
        return key

    def _span(self, user: Frame | None, inner: Place | None) -> Span:
        if user is None:
            return line_span(self._target.file, self._target.line)
        # A caller above the compiled frame runs rewritten bytecode, whose columns need not be the source's.
        return span_of(user) if inner is None else line_span(user.file, user.line)


def _graph_break(entry: _Entry) -> GraphBreak:
    span, text = entry.span, entry.text
    identifier = dynamo_breaks.break_id(text.kind)
    return GraphBreak(
        file=span.file,
        line=span.line,
        end_line=span.end_line,
        column=span.column,
        end_column=span.end_column,
        code=identifier or "",
        reason=text.kind,
        explanation="\n".join([text.explanation, *(_then(later) for later in entry.consequences)]),
        hints=text.hints,
        link=dynamo_breaks.break_link(identifier) if identifier else None,
        frames=tuple(frame.place for frame in entry.chain),
        outcome=entry.outcome,
        count=entry.count,
        inner=entry.inner,
        fullgraph=entry.fullgraph,
    )


def _finding(entry: _Entry) -> Finding:
    facts = _graph_break(entry)
    return finding(
        "graph-break",
        entry.span,
        _message(entry),
        id=facts.code or None,
        link=facts.link,
        count=entry.count,
        related=_related(entry),
        outcome=entry.outcome,
        function=_function(entry),
        hints=() if _is_asked_by_library(entry) else entry.text.hints,
    )


def _message(entry: _Entry) -> str:
    what = ended(f"Graph break: {entry.text.kind}")
    # Its explanation and its hint speak of a call that the user wrote.
    why = "" if _is_asked_by_library(entry) else ended(entry.text.explanation.split("\n\n")[0])
    where = _in_library(entry.inner) if entry.inner else ""
    then = [_then(later) for later in entry.consequences]
    followed = _FOLLOWED[entry.outcome].format(function=f"`{entry.compiled}`")
    return " ".join(part for part in (what, why, where, *then, followed) if part)


def _is_asked_by_library(entry: _Entry) -> bool:
    """Whether a library, such as torch's optimizers, breaks the graph on purpose."""
    return entry.inner is not None and entry.text.kind == dynamo_breaks.ASKED_FOR


def _in_library(inner: Place) -> str:
    place = f"{Path(inner.file).name}:{inner.line}"
    where = f"`{inner.function}` ({place})" if inner.function else place
    return f"It is in {where}, which this line leads to."


def _then(later: BreakText) -> str:
    identifier = dynamo_breaks.break_id(later.kind)
    return f"Handling it led to another: {later.kind}{f' ({identifier})' if identifier else ''}."


def _related(entry: _Entry) -> tuple[Related, ...]:
    here = (entry.span.file, entry.span.line)  # a comprehension is a call on its own line
    callers = (place for place in entry.callers if (place.file, place.line) != here)
    calls = [Related(place.file, place.line, "called from here") for place in callers]
    inner = [Related(entry.inner.file, entry.inner.line, "breaks here, in a library")] if entry.inner else []
    return (*calls, *inner)


def _function(entry: _Entry) -> str | None:
    return entry.chain[-1].function if entry.chain else None
