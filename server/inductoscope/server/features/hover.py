"""What is known of a line: what it makes, and cards for the breaks, recompiles and kernels that it led to.

Says nothing when there is nothing.  Text is built from blocks, which a client gets as Markdown or as plain text.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from inductoscope.protocol.report import (
    DeviceSync,
    FusionGroup,
    GraphBreak,
    GuardFailure,
    Kernel,
    KernelLanguage,
    Outcome,
    Phase,
    Recompile,
    TargetReport,
    ValueFact,
)
from inductoscope.server import apart, whole_calls, words
from inductoscope.server.features import assembled, held_to, kernels, operators, passes, timeline, values
from inductoscope.server.features.kernels import Launched
from inductoscope.server.features.markup import Block, Code, Heading, Link, Note, Points, Words
from inductoscope.server.snapshot import Result, Snapshot, TargetView

WHOLE_CARDS = 2
"""Kernels of a line that are shown with all that is known of them; forward and generated ones come first."""

LISTED = 8
"""Further kernels that are named."""

NEIGHBOURS = 3
"""Kernels that one was not fused with of which the reason is given."""

SOURCE_LINES = 60
"""Lines of a kernel's source that a hover shows at most; the whole is in its document."""

_OUTCOMES = {
    Outcome.SPLIT: "The graph is split here: one before, one after, Python in between.",
    Outcome.REST_EAGER: "The rest of this function runs eagerly.",
    Outcome.FUNCTION_EAGER: "The whole function runs eagerly.",
}


@dataclass(frozen=True)
class Hover:
    """What to show for a line (1-based)."""

    line: int
    blocks: tuple[Block, ...]


def hover(snapshot: Snapshot, path: str, line: int) -> Hover | None:
    """What is known of a line of an open file."""
    blocks: list[Block] = []
    for view in snapshot.targets.values():
        for result in view.results:
            then = snapshot.then_at(result, path, line)
            cards = list(_cards(view, result.report, path, then)) if then is not None else []
            if cards:
                blocks += [*cards, _origin(snapshot, view, result)]
                break  # an older result has nothing to add about a line that a newer one speaks of
    return Hover(line, tuple(blocks)) if blocks else None


def _cards(view: TargetView, report: TargetReport, path: str, line: int) -> Iterator[Block]:
    if (report.file, report.line) == (path, line):
        yield from _whole_card(report)
    yield from _value_card(values.on_line(report, path, line))
    for item in report.breaks:
        if (item.file, item.line) == (path, line):
            yield from _break_card(item)
    for recompile in report.recompiles:
        if (path, line) in _places(recompile):
            yield from _recompile_card(recompile)
    for sync in report.syncs:
        if (sync.file, sync.line) == (path, line):
            yield from _sync_card(sync)
    for decision in report.decisions:
        if (decision.file, decision.line) == (path, line):
            yield Heading("Only the card can decide this")
            yield Points((words.decision(decision), decision.text))
    yield from operators.cards(view, report, path, line)
    yield from _kernel_cards(kernels.on_line(report, path, line), view, report, path, line)
    yield from held_to.cards(report, path, line)
    yield from passes.card(report, path, line)
    yield from timeline.card(report, path, line)


def _whole_card(report: TargetReport) -> Iterator[Block]:
    """What a call is predicted to take, at the line of the definition."""
    told = tuple(whole_calls.account(report))
    if told:
        yield Heading("What a call is predicted to take")
        yield Points(told)


def _value_card(facts: list[ValueFact]) -> Iterator[Block]:
    """What the line makes, in each version that was compiled."""
    if facts:
        listed = list(dict.fromkeys(map(_value_words, facts)))
        more = [f"and {len(listed) - LISTED} more"] if len(listed) > LISTED else []
        yield Heading("This line makes")
        yield Points((*listed[:LISTED], *more))


def _value_words(fact: ValueFact) -> str:
    name = f"{fact.name}: " if fact.name else ""
    strides = f", strides [{', '.join(fact.stride)}]" if fact.stride is not None else ""
    device = f" on {fact.device}" if fact.device is not None else ""
    return f"{name}{fact.text}{strides}{device}{f' ({fact.op})' if fact.op else ''}"


def _break_card(item: GraphBreak) -> Iterator[Block]:
    yield Heading(f"Graph break: {item.reason}")
    yield Words(_OUTCOMES[item.outcome] + (f" Met {item.count} times." if item.count > 1 else ""))
    if item.explanation:
        yield Words(item.explanation)
    if item.hints:
        yield Points(item.hints)
    if item.link:
        yield Link(f"About {item.code}", item.link)


def _recompile_card(item: Recompile) -> Iterator[Block]:
    which = "" if item.input_set is None else f" on call {item.input_set + 1}"
    yield Heading(f"Recompiled{which}: {item.function}")
    yield Points(tuple(map(_guard_words, item.guards)))


def _guard_words(guard: GuardFailure) -> str:
    measured = "its length is now" if guard.kind == "length" else "now"
    now = f" ({measured} {guard.actual})" if guard.actual is not None and guard.actual not in guard.text else ""
    hint = f" {guard.hint}" if guard.hint else ""
    return f"the guard {guard.text} failed{now}.{hint}"


def _sync_card(item: DeviceSync) -> Iterator[Block]:
    times = f", {item.count} times" if item.count > 1 else ""
    yield Heading(f"The host waits for the device here ({item.expression or item.what}{times})")
    if item.value is not None:
        guess = "guessed to be" if item.guessed else "it was"
        yield Words(f"The value: {guess} {item.value}." + (f" {item.reason}" if item.reason else ""))


def _kernel_cards(
    found: list[Launched], view: TargetView, report: TargetReport, path: str, line: int
) -> Iterator[Block]:
    """Whole cards for the first few, a line each for the others."""
    for launched in found[:WHOLE_CARDS]:
        kernel = launched.kernel
        yield Heading(f"Kernel {kernel.name}")
        yield Points((*_kernel_points(launched, path, line), *_apart(launched, report, path)))
        if kernel.note:
            yield Note(kernel.note)
        if documents := assembled.links(view, report, kernel):
            yield documents
        if kernel.source:
            yield _source_block(kernel, path, line)
    rest = found[WHOLE_CARDS:]
    if rest:
        yield Words("This line also went into:")
        lines = [_kernel_line(launched) for launched in rest[:LISTED]]
        more = len(rest) - LISTED
        yield Points((*lines, f"and {more} more") if more > 0 else tuple(lines))


def _kernel_line(launched: Launched) -> str:
    kernel = launched.kernel
    cost = f", {words.predicted(kernel.predicted)}" if kernel.predicted is not None else ""
    return f"{kernel.name}: {_kind(launched)}{cost}"


def _kernel_points(launched: Launched, path: str, line: int) -> Iterator[str]:
    kernel, group = launched.kernel, launched.group
    yield _kind(launched)
    if together := _fused_with(group, path, line):
        yield f"fused with {together}"
    if kernel.bytes_read is not None and kernel.bytes_written is not None:
        yield f"reads {words.size(kernel.bytes_read)}, writes {words.size(kernel.bytes_written)}"
    if kernel.flops:
        yield f"{kernel.flops:,} floating-point operations"
    if ways := words.choices(kernel, LISTED):
        yield ways
    if kernel.measured is not None:
        measured = kernel.measured
        yield f"measured {words.duration(measured.us)} on {measured.where} ({measured.method}, {measured.runs} runs)"
    if kernel.predicted is not None:
        yield words.predicted(kernel.predicted)
    if kernel.resources is not None:
        yield words.resources(kernel.resources)
    yield from assembled.points(kernel, path, line)


def _apart(launched: Launched, report: TargetReport, path: str) -> Iterator[str]:
    """Why its neighbours are kernels of their own."""
    neighbours = apart.telling_first(launched.group.apart_from) if launched.group else []
    for neighbour in neighbours[:NEIGHBOURS]:
        yield apart.reason(neighbour, report, path)
    if len(neighbours) > NEIGHBOURS:
        yield f"not fused with {len(neighbours) - NEIGHBOURS} more"


def _kind(launched: Launched) -> str:
    kernel, group = launched.kernel, launched.group
    what = "library call" if kernel.language is KernelLanguage.EXTERN else f"{kernel.language.value} kernel"
    made_by = f" ({kernel.library})" if kernel.library and not kernel.user_written else ""
    parts = [f"hand-written {what}" if kernel.user_written else what + made_by]
    if group is not None:
        parts.append(group.kind)
        if group.fusion != "none":
            parts.append(f"{group.fusion} fusion of {words.count(len(group.ops), 'operator')}")
    if kernel.phase is Phase.BACKWARD:
        parts.append("backward")
    if launched.times > 1:
        parts.append(f"launched {launched.times} times")
    return ", ".join(parts)


def _fused_with(group: FusionGroup | None, path: str, line: int) -> str:
    """The operators of other lines that the kernel also computes."""
    by_line: dict[tuple[str, int], list[str]] = {}
    for op in group.ops if group else ():
        if op.file is not None and op.line is not None and (op.file, op.line) != (path, line):
            ops = by_line.setdefault((op.file, op.line), [])
            if op.op not in ops:
                ops.append(op.op)
    return "; ".join(f"{words.lines([place], path)} ({', '.join(ops)})" for place, ops in by_line.items())


def _source_block(kernel: Kernel, path: str, line: int) -> Code:
    """The kernel's function with the lines that this line became marked, shown first when it is long."""
    marked = {m.kernel_line for m in kernel.line_map if (m.file, m.line) == (path, line)}
    source = (kernel.source or "").rstrip("\n").split("\n")
    comment = "#" if kernel.language is KernelLanguage.TRITON else "//"
    language = "python" if kernel.language is KernelLanguage.TRITON else "cpp"
    first = _function_start(kernel, source)
    if len(source) - first > SOURCE_LINES and marked:
        first = max(min(min(marked) - 4, len(source) - SOURCE_LINES), first)
    shown = []
    for number, text in enumerate(source[first : first + SOURCE_LINES], start=first + 1):
        shown.append(f"{text}  {comment} <- line {line}" if number in marked else text)
    if first:
        shown.insert(0, f"{comment} … {words.count(first, 'line')} above")
    if (rest := len(source) - first - SOURCE_LINES) > 0:
        shown.append(f"{comment} … {words.count(rest, 'line')} below")
    return Code(language, "\n".join(shown))


def _function_start(kernel: Kernel, source: list[str]) -> int:
    """Index of the line where the function begins; imports and launch settings above it say nothing about the line."""
    begins = "@triton.jit" if kernel.language is KernelLanguage.TRITON else 'extern "C"'
    return next((index for index, text in enumerate(source) if text.startswith(begins)), 0)


def _origin(snapshot: Snapshot, view: TargetView, result: Result) -> Note:
    parts = [view.target.name, words.device(result.report.device), words.age(snapshot.now - result.at)]
    if snapshot.is_stale(result):
        parts.append("before the last edits")
    if result is view.current:
        parts.append("still checking")
    return Note(", ".join(parts))


def _places(recompile: Recompile) -> set[tuple[str, int]]:
    guards = {(g.file, g.line) for g in recompile.guards if g.file is not None and g.line is not None}
    return guards or {(recompile.file, recompile.line)}
