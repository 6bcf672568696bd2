"""Views over a whole run: who started which compilation, what repeats cost, and what is distinct among many."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from inductoscope.protocol.report import GraphBreak
from inductoscope.server.traces import codes
from inductoscope.server.traces.break_records import breaks_of, merged
from inductoscope.server.traces.codes import Sources
from inductoscope.server.traces.compilations import Compilation, Frame
from inductoscope.server.traces.findings import guard_text
from inductoscope.server.traces.functions import by_function
from inductoscope.server.traces.places import Places
from inductoscope.server.traces.process import Process
from inductoscope.server.traces.reports import failures
from inductoscope.server.traces.run import Call, CompilationFacts, DistinctBreak, FunctionCost, Step, Story

_GRAPH_CACHES = frozenset({"fx_graph_cache", "aotautograd_cache", "fx_graph_bundled_cache"})


def facts(one: Compilation, process: Process, places: Places) -> CompilationFacts:
    """One compilation in numbers.  Each time is without the parts that stand beside it."""
    at = places.function(one.function)
    whole, backend, inductor = _times(one)
    backward = float(one.backward.get("duration_us") or one.backward.get("inductor_cumulative_compile_time_us") or 0)
    ops = one.metrics.get("graph_op_count")
    return CompilationFacts(
        id=one.id,
        process=process.label,
        function=places.owner(one.function) if one.function.resumed else places.title(at),
        file=at.file,
        line=at.line,
        resumed=one.function.resumed,
        attempts=one.attempts,
        ops=ops if isinstance(ops, int) else None,
        kernels=sum(1 for _ in codes.kernels(one, places, Sources.LEFT_OUT)),
        ms=(whole + backward) / 1e3,
        dynamo_ms=max(whole - backend, 0.0) / 1e3,
        aot_ms=max(backend - inductor, 0.0) / 1e3,
        inductor_ms=inductor / 1e3,
        backward_ms=backward / 1e3,
        cache=cache_answer(one),
        result=_result(one),
        clock=one.clock,
    )


def cache_answer(one: Compilation) -> str | None:
    """What the caches of graphs said: hit, miss, mixed; None where they were not asked."""
    answers = {event.result for event in one.caches if event.cache in _GRAPH_CACHES}
    if not answers:
        return None
    if "hit" in answers and len(answers) == 1:
        return "hit"
    return "miss" if "hit" not in answers else "mixed"


def _times(one: Compilation) -> tuple[float, float, float]:
    """Microseconds of the whole forward compilation, of the backend in it, of Inductor in that."""
    metrics = one.metrics
    whole = float(metrics.get("duration_us") or 1e6 * float(metrics.get("entire_frame_compile_time_s") or 0))
    backend = float(
        metrics.get("aot_autograd_cumulative_compile_time_us")
        or 1e6 * float(metrics.get("backend_compile_time_s") or 0)
    )
    inductor = float(
        metrics.get("inductor_cumulative_compile_time_us") or 1e6 * float(metrics.get("inductor_compile_time_s") or 0)
    )
    return whole, backend, inductor


def _result(one: Compilation) -> str:
    if one.gave_up:
        return "gave up"
    if one.error is not None:
        return str(one.metrics.get("fail_type") or "error")
    if any(text.name in ("dynamo_output_graph", "compiled_autograd_graph") for text in one.graphs):
        return "compiled"
    return "nothing to compile" if one.metrics else "unfinished"


def calls(processes: Sequence[Process], places: Places) -> tuple[Call, ...]:
    """Every line that called a compiled function, with what this compiled, in order."""
    found: dict[tuple[str, int] | None, list[tuple[Compilation, Process, Frame | None]]] = {}
    numbers: dict[tuple[int, str], tuple[str, int] | None] = {}
    for process in processes:
        for one in _real(process):
            frame = one.call
            number = (id(process), one.frame_number)
            key = (frame.file, frame.line) if frame else numbers.get(number)
            numbers.setdefault(number, key)
            found.setdefault(key, []).append((one, process, frame))
    return tuple(_call(ones, places) for ones in found.values())


def _call(ones: Sequence[tuple[Compilation, Process, Frame | None]], places: Places) -> Call:
    frame = next((frame for _, _, frame in ones if frame is not None), None)
    at = places.of(frame) if frame is not None else None
    told = tuple(facts(one, process, places) for one, process, _ in ones)
    return Call(
        file=at.file if at else None,
        line=at.line if at else None,
        function=frame.function if frame else None,
        text=frame.text if frame else "",
        ms=sum(one.ms for one in told),
        exact=any(one.is_call_exact for one, _, found in ones if found is not None),
        compilations=told,
    )


def _real(process: Process) -> Iterator[Compilation]:
    """What is a compilation: not the loose records outside of one."""
    return (one for one in process.compilations if one.id != "-" and (one.stack or one.metrics or one.graphs))


def distinct_breaks(processes: Sequence[Process], places: Places) -> tuple[DistinctBreak, ...]:
    """Each root cause once, the most frequent first, with the processes that met it."""
    met: dict[tuple[object, ...], list[tuple[GraphBreak, str]]] = {}
    for process in processes:
        for one in process.compilations:
            for found in breaks_of([one], places):
                key = (found.file, found.line, found.code, found.reason, found.inner)
                met.setdefault(key, []).append((found, process.label))
    distinct = []
    for ones in met.values():
        (whole,) = merged(found for found, _ in ones)
        distinct.append(DistinctBreak(whole, tuple(dict.fromkeys(label for _, label in ones)), len(ones)))
    return tuple(sorted(distinct, key=lambda one: -one.found.count))


def stories(processes: Sequence[Process], places: Places) -> tuple[Story, ...]:
    """The functions that were compiled again, those that cost most first."""
    found = []
    for process in processes:
        for ones in by_function([process]).values():
            again = {one.frame_number for one in ones if one.reasons is not None}
            for number in sorted(again):
                versions = [one for one in ones if one.frame_number == number]
                function = versions[0].function
                at = places.function(function)
                name = places.owner(function) if function.resumed else places.title(at)
                steps = tuple(_step(one, process, places) for one in versions)
                found.append(Story(name, at.file, at.line, function.resumed, steps))
    return tuple(sorted(found, key=lambda story: -sum(step.ms for step in story.steps)))


def _step(one: Compilation, process: Process, places: Places) -> Step:
    guards = tuple(failures(one, places))
    guard = guards[0] if guards else None
    told = facts(one, process, places)
    return Step(
        compile_id=one.id,
        process=process.label,
        clock=one.clock,
        guard=guard_text(guard) if guard is not None else None,
        file=guard.file if guard is not None else None,
        line=guard.line if guard is not None else None,
        others=max(len(guards) - 1, 0),
        ms=told.ms,
        result=told.result,
        cache=told.cache,
    )


def costs(processes: Sequence[Process], places: Places) -> tuple[FunctionCost, ...]:
    """What each function cost to compile, the dearest first."""
    owners = {id(one): process for process in processes for one in process.compilations}
    found = []
    for key, ones in by_function(processes).items():
        start = places.function(key.frame)
        told = [facts(one, owners[id(one)], places) for one in ones]
        found.append(
            FunctionCost(
                function=places.title(start),
                file=start.file,
                line=start.line,
                compilations=len(told),
                ms=sum(one.ms for one in told),
                dynamo_ms=sum(one.dynamo_ms for one in told),
                aot_ms=sum(one.aot_ms for one in told),
                inductor_ms=sum(one.inductor_ms for one in told),
                backward_ms=sum(one.backward_ms for one in told),
                cold_ms=_of(told, ("miss", "mixed")),
                warm_ms=_of(told, ("hit",)),
            )
        )
    return tuple(sorted(found, key=lambda cost: -cost.ms))


def _of(told: Iterable[CompilationFacts], answers: tuple[str, ...]) -> float | None:
    times = [one.ms for one in told if one.cache in answers]
    return sum(times) if times else None
