"""A trace as text for people: the run in one line, then who compiled what, what broke, what repeated, what it cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from inductoscope.protocol.report import Finding, Severity
from inductoscope.server import words
from inductoscope.server.text import findings
from inductoscope.server.text.blocks import Code, counted, gap, indented, paragraph
from inductoscope.server.text.view import View
from inductoscope.server.traces.run import CacheMiss, Call, CompilationFacts, Difference, Step, Story, TraceReport
from inductoscope.server.traces.sections import Section

MOST_ROWS = 40
"""Rows of a list that are shown unless all are asked for."""


def whole(report: TraceReport, view: View, shown: frozenset[Section]) -> Group:
    """Everything about a trace that is asked for."""
    return Group(*_whole(report, view, shown), gap())


def _whole(report: TraceReport, view: View, shown: frozenset[Section]) -> Iterator[RenderableType]:
    yield from _header(report, view)
    yield from findings.listed(_distinct(report), view)
    yield from _ranks(report, view)
    yield from _calls(report.calls, view, Section.CALLS in shown)
    for story in report.stories if Section.RECOMPILES in shown else report.stories[:5]:
        yield from _story(story, view)
    yield from _costs(report, view)
    if Section.CACHES in shown:
        yield from _misses(report, view)
    if Section.PHASES in shown:
        yield from _phases(report)
    if Section.KERNELS in shown:
        yield from _kernels(report)
    if Section.GUARDS in shown:
        yield from _guards(report, view)
    if Section.ARTIFACTS in shown:
        yield from _artifacts(report)
    if Section.RECORDS in shown:
        yield from _records(report)
    elif report.unknown:
        unknown = ", ".join(f"{kind} ({number})" for kind, number in report.unknown.items())
        yield from (gap(), paragraph(f"records that this version does not know: {unknown}", "dim", 0))


def _header(report: TraceReport, view: View) -> Iterator[RenderableType]:
    versions = [f"torch {report.torch}" if report.torch else "", f"Python {report.python}" if report.python else ""]
    ranks = [one for one in report.processes if one.rank is not None]
    who = words.count(len(report.processes), "process", "processes")
    if ranks:
        who = words.count(len({one.rank for one in ranks}), "rank")
    about = ", ".join(part for part in (*versions, who) if part)
    yield Text.assemble((report.source, "bold"), f"  {view.file(report.path)}  ", (about, "dim"))
    for one in report.processes:
        if one.command:
            yield paragraph(f"{one.label}: {' '.join(one.command)}", "dim", 2)
    yield paragraph(summary(report), indent=2)
    for note in report.notes:
        yield paragraph(f"note: {note}", indent=2)


def summary(report: TraceReport) -> str:
    """`16 compilations of 7 functions in 20.3 s; 2 distinct graph breaks, met 6 times; 5 recompiles`."""
    compilations = sum(one.compilations for one in report.processes)
    recompiles = sum(sum(step.guard is not None for step in story.steps) for story in report.stories)
    met = sum(one.found.count for one in report.breaks)
    times = f", met {words.count(met, 'time')}" if met != len(report.breaks) else ""
    parts = [
        f"{words.count(compilations, 'compilation')} of {words.count(len(report.costs), 'function')} in "
        f"{_time(sum(cost.ms for cost in report.costs))}",
        f"{words.count(len(report.breaks), 'distinct graph break')}{times}",
        words.count(recompiles, "recompile"),
    ]
    gave_up = sum(step.result == "gave up" for story in report.stories for step in story.steps)
    if gave_up:
        parts.append(f"gave up {words.count(gave_up, 'time')}")
    return "; ".join(parts)


def _distinct(report: TraceReport) -> tuple[Finding, ...]:
    """The findings of all functions, each once: a break in a helper is told by every function that calls it."""
    found: dict[tuple[object, ...], Finding] = {}
    for target in report.targets:
        for finding in target.findings:
            found.setdefault((finding.code, finding.file, finding.line, finding.message), finding)
    order = list(Severity)
    return tuple(sorted(found.values(), key=lambda one: order.index(one.severity)))


def _ranks(report: TraceReport, view: View) -> Iterator[RenderableType]:
    if len({one.rank for one in report.processes if one.rank is not None}) < 2:
        return
    yield gap()
    if not report.differences:
        yield paragraph("all ranks compiled the same", "bold", 2)
    else:
        yield paragraph("ranks differ", "bold red", 2)
        for one in report.differences:
            yield from _difference(one, view)
    if report.collectives:
        yield from (gap(), paragraph("collectives in the graphs", "bold", 2))
        for fact in report.collectives[:MOST_ROWS]:
            at = view.place(fact.file, fact.line) if fact.file and fact.line else "no line is known"
            yield paragraph(f"{fact.name}  {at}  graph {fact.graph} of {fact.function}  ({', '.join(fact.processes)})")


def _difference(one: Difference, view: View) -> Iterator[RenderableType]:
    of = f" of {one.function} ({view.place(one.file, one.line)})" if one.function and one.file and one.line else ""
    yield paragraph(f"{one.what}{of}")
    for value, ranks in one.values.items():
        yield paragraph(f"{_ranks_named(ranks)}: {value}", "dim", 6)


def _ranks_named(ranks: Sequence[int]) -> str:
    name = "rank" if len(ranks) == 1 else "ranks"
    shown = ", ".join(map(str, ranks[:8]))
    return f"{name} {shown}{f' and {len(ranks) - 8} more' if len(ranks) > 8 else ''}"


def _calls(calls: Sequence[Call], view: View, whole_list: bool) -> Iterator[RenderableType]:
    if not calls:
        return
    yield from (gap(), paragraph("what each call compiled", "bold", 2))
    left = 10_000_000 if whole_list else MOST_ROWS
    for call in calls:
        if left <= 0:
            break
        where = view.place(call.file, call.line) if call.file and call.line else "a call outside of the program"
        where = where if call.exact or not call.line else f"below {where}"
        head = f"{where}  {call.text.strip()}".rstrip()
        total = f"  {words.count(len(call.compilations), 'compilation')}, {_time(call.ms)}"
        yield Code(Text.assemble(head, (total, "dim")), 4)
        for one in call.compilations[:left]:
            yield Code(_compilation(one, view), 6)
        left -= len(call.compilations)
    if left < 0:
        yield paragraph(f"and {-left} more (--show calls)", "dim")


def _compilation(one: CompilationFacts, view: View) -> Text:
    name = f"rest of {one.function} from line {one.line}" if one.resumed else one.function
    parts = [_time(one.ms), one.result]
    if one.ops is not None:
        parts.append(words.count(one.ops, "op"))
    if one.kernels:
        parts.append(words.count(one.kernels, "kernel"))
    if one.backward_ms:
        parts.append(f"backward {_time(one.backward_ms)}")
    if one.attempts > 1:
        parts.append(f"{one.attempts} attempts")
    if one.cache is not None:
        parts.append(f"cache {one.cache}")
    style = "" if one.result in ("compiled", "nothing to compile") else "yellow"
    where = "" if one.resumed else f"  {view.place(one.file, one.line)}"
    return Text.assemble((f"{one.id:<6}", "bold"), (f"{name}{where}", style), (f"  {', '.join(parts)}", "dim"))


def _story(story: Story, view: View) -> Iterator[RenderableType]:
    what = f"what follows the break in {story.function}" if story.resumed else story.function
    head = f"why {what} ({view.place(story.file, story.line)}) was compiled {len(story.steps)} times"
    yield from (gap(), paragraph(head, "bold", 2))
    for step in story.steps[:MOST_ROWS]:
        yield paragraph(_step(step, view))
    if len(story.steps) > MOST_ROWS:
        yield paragraph(f"and {len(story.steps) - MOST_ROWS} more", "dim")


def _step(step: Step, view: View) -> str:
    why = f"because {step.guard}" if step.guard is not None else "the first time"
    made = f" (made at {view.place(step.file, step.line)})" if step.file and step.line else ""
    others = f", and {words.count(step.others, 'older version')} did not fit either" if step.others else ""
    cost = f"gave up after {_time(step.ms)}" if step.result == "gave up" else f"{_time(step.ms)}, {step.result}"
    cache = f", cache {step.cache}" if step.cache is not None else ""
    return f"{step.clock}  {step.compile_id}  {why}{made}{others}: {cost}{cache}"


def _costs(report: TraceReport, view: View) -> Iterator[RenderableType]:
    if not report.costs:
        return
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in ("function", "times", "total", "Dynamo", "AOTAutograd", "Inductor", "backward", "cold", "warm"):
        table.add_column(name, justify="left" if name == "function" else "right", no_wrap=name != "function")
    for cost in report.costs[:MOST_ROWS]:
        times = (cost.ms, cost.dynamo_ms, cost.aot_ms, cost.inductor_ms, cost.backward_ms, cost.cold_ms, cost.warm_ms)
        cells = ("-" if ms is None or not ms else _time(ms) for ms in times)
        table.add_row(f"{cost.function} ({view.place(cost.file, cost.line)})", str(cost.compilations), *cells)
    yield from (gap(), paragraph("compile time by function", "bold", 2), indented(table, 4))


def _misses(report: TraceReport, view: View) -> Iterator[RenderableType]:
    yield from (gap(), paragraph("why caches missed", "bold", 2))
    alike: dict[str, list[CacheMiss]] = {}
    for miss in report.cache_misses:
        alike.setdefault("; ".join(miss.because) or "torch does not say", []).append(miss)
    for because, found in alike.items():
        who = (f"{_asked(one)} ({view.place(one.file, one.line)})" for one in found)
        yield paragraph(f"{because}:")
        for name, times in counted(who):
            yield paragraph(f"{name}{f', {times} times' if times > 1 else ''}", "dim", 6)
    if not report.cache_misses:
        yield paragraph("no cache missed")


def _asked(miss: CacheMiss) -> str:
    return f"{miss.cache} {miss.result} of {miss.compile_id} {miss.function}"


def _phases(report: TraceReport) -> Iterator[RenderableType]:
    yield from (gap(), paragraph("time by phase, without the phases inside of it", "bold", 2))
    total = sum(one.ms for one in report.phases)
    for one in report.phases:
        if total and one.ms / total >= 0.005:
            yield paragraph(f"{_time(one.ms):>9}  {one.ms / total:4.0%}  {one.name}, {words.count(one.count, 'time')}")


def _kernels(report: TraceReport) -> Iterator[RenderableType]:
    for target in report.targets:
        for kernel in target.kernels:
            lines = words.lines([(place.file, place.line) for place in kernel.lines], target.file)
            head = f"{kernel.graph} {kernel.name}  {lines or 'no line is known'}"
            yield from (gap(), paragraph(head, "bold", 2))
            if kernel.source:
                yield Code(Text(kernel.source.rstrip()), 4)


def _guards(report: TraceReport, view: View) -> Iterator[RenderableType]:
    for target in report.targets:
        yield from (gap(), paragraph(f"guards of {target.name}", "bold", 2))
        told = [guard for guard in target.guards if not guard.internal]
        for guard in told:
            made = f"  ({view.place(guard.file, guard.line)})" if guard.file and guard.line else ""
            text = guard.text or f"{guard.source} {guard.kind}: {guard.expected}"
            yield paragraph(f"{guard.compile_id}  {text}{made}")
        hidden = len(target.guards) - len(told)
        if hidden:
            yield paragraph(f"and {hidden} on torch's own state", "dim")


def _artifacts(report: TraceReport) -> Iterator[RenderableType]:
    yield from (gap(), paragraph("texts in the trace (--extract FOLDER writes them)", "bold", 2))
    for one in report.artifacts:
        yield Code(Text(f"{one.number:>5}  {one.compile_id:<6}  {words.size(one.bytes):>9}  {one.name}"), 4)


def _records(report: TraceReport) -> Iterator[RenderableType]:
    yield from (gap(), paragraph("records", "bold", 2))
    for kind, number in sorted(report.records.items(), key=lambda one: -one[1]):
        yield Code(Text(f"{number:>8}  {kind}{'  (not known)' if kind in report.unknown else ''}"), 4)


def _time(ms: float) -> str:
    return words.duration(ms * 1e3)
