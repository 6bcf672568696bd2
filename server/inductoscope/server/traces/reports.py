"""The reports of a trace: for each function that was compiled the same facts as a check of it would tell."""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from inductoscope.protocol.report import (
    CacheFact,
    CudaGraphs,
    Graph,
    GuardFact,
    GuardFailure,
    Phase,
    PhaseTime,
    Place,
    Recompile,
    RecompileLimit,
    Rung,
    SkippedFrame,
    Specialization,
    Status,
    TargetReport,
    Wrapper,
)
from inductoscope.protocol.torch_texts.guards import failure, read_reasons
from inductoscope.protocol.torch_texts.naming import plain
from inductoscope.server.traces import codes, findings, guard_tree
from inductoscope.server.traces.break_records import breaks_of
from inductoscope.server.traces.codes import Sources
from inductoscope.server.traces.compilations import Compilation, Frame
from inductoscope.server.traces.functions import Key, by_function
from inductoscope.server.traces.places import Places
from inductoscope.server.traces.process import Process

_PHASES = (
    ("dynamo", "dynamo_cumulative_compile_time_us"),
    ("backend", "aot_autograd_cumulative_compile_time_us"),
    ("inductor", "inductor_cumulative_compile_time_us"),
)
_LAST_LINE = re.compile(r"^(?P<kind>[\w.]+(?:Error|Exception|Unsupported|Violation\w*|Hit\w*)?): (?P<text>.*)$", re.M)


class Detail(enum.Enum):
    """What costs much to read, or fills memory, and is only read when asked for."""

    KERNELS = "kernels"  # the texts of kernels and wrappers
    GUARDS = "guards"
    PHASES = "phases"  # of the timeline, which is half of a trace


@dataclass(frozen=True)
class Asked:
    """How much to read."""

    details: frozenset[Detail] = frozenset()

    @property
    def sources(self) -> Sources:
        """Whether texts of kernels are wanted."""
        return Sources.KEPT if Detail.KERNELS in self.details else Sources.LEFT_OUT


def reports(processes: Sequence[Process], places: Places, asked: Asked) -> tuple[TargetReport, ...]:
    """One report for each function, from all processes that are given."""
    skipped = _skipped(processes, places)
    found = [_report(key, ones, processes, places, asked) for key, ones in by_function(processes).items()]
    told = {(one.file, one.name.rpartition(".")[2]) for one in found}
    lonely = (frame for frame in skipped if (frame.file, frame.function) not in told)
    found = [replace(one, skipped=_of_file(skipped, one)) for one in found if one.graphs or _says_something(one)]
    return (*found, *(_left_alone(frame, places) for frame in lonely))


def _says_something(report: TargetReport) -> bool:
    return bool(report.breaks or report.recompiles or report.findings or report.recompile_limit)


def _of_file(skipped: Iterable[SkippedFrame], report: TargetReport) -> tuple[SkippedFrame, ...]:
    name = report.name.rpartition(".")[2]
    return tuple(one for one in skipped if (one.file, one.function) == (report.file, name))


def _report(
    key: Key, ones: Sequence[Compilation], processes: Sequence[Process], places: Places, asked: Asked
) -> TargetReport:
    start = places.function(key.frame)
    name = places.title(start)
    graphs = tuple(_graphs(ones, places))
    limit = _limit(ones, start, [fields for process in processes for fields in process.limits])
    breaks = breaks_of(ones, places)
    failed = [one for one in ones if one.error is not None and not one.gave_up]
    status = Status.PARTIAL if breaks else Status.COMPILED
    if not graphs:
        status = Status.FAILED if failed else Status.EAGER
    kernels = tuple(kernel for one in ones for kernel in codes.kernels(one, places, asked.sources))
    report = TargetReport(
        file=start.file,
        name=name,
        line=start.line,
        device=_device(ones) or "unknown",
        rung=Rung.LOWER if any(one.codes for one in ones) else Rung.CAPTURE,
        status=status,
        graphs=graphs,
        breaks=breaks,
        recompiles=tuple(_recompiles(ones, start, places)),
        recompile_limit=limit,
        specializations=tuple(_pinned(ones, places)),
        guards=tuple(_guards(ones, places)) if Detail.GUARDS in asked.details else (),
        kernels=kernels,
        wrappers=tuple(_wrappers(ones)) if asked.sources is Sources.KEPT else (),
        cudagraphs=_cudagraphs(ones),
        caches=tuple(_caches(ones)),
        phases=tuple(_phases(ones)),
    )
    errors = tuple(_error(one, start, places) for one in failed)
    report = replace(report, findings=findings.of(report, errors, places))
    return report if graphs or not errors else replace(report, message=errors[0].message)


def _graphs(ones: Iterable[Compilation], places: Places) -> Iterator[Graph]:
    for one in ones:
        if one.error is None and any(text.name == "dynamo_output_graph" for text in one.graphs):
            at = places.function(one.function)
            ops = one.metrics.get("graph_op_count")
            counted = ops if isinstance(ops, int) else codes.operators(one.graphs[-1].payload.text())
            yield Graph(one.id, one.function.function, at.file, at.line, counted)
    for one in ones:
        backward = next((text for text in reversed(one.graphs) if text.name == "aot_backward_graph"), None)
        if backward is not None:
            at = places.function(one.function)
            ops = codes.operators(backward.payload.text())
            yield Graph(one.id, one.function.function, at.file, at.line, ops, Phase.BACKWARD)


def _recompiles(ones: Iterable[Compilation], start: Place, places: Places) -> Iterator[Recompile]:
    for one in ones:
        if one.reasons is not None:
            guards = tuple(failures(one, places))
            yield Recompile(start.file, start.line, start.function or "?", one.id, None, guards)


def failures(one: Compilation, places: Places) -> Iterator[GuardFailure]:
    """The guards that asked for a compilation, that of the newest earlier version first."""
    if one.reasons is None:
        return
    for reason in read_reasons(one.reasons.text()):
        stack = [Frame(place.file, place.line, place.function or "?") for place in reason.stack]
        user = next((frame for frame in reversed(stack) if frame.is_user), None)
        at = places.of(user) if user is not None else None
        found = failure(reason.guard)
        yield replace(found, hint=reason.hint, file=at.file if at else None, line=at.line if at else None)


def _limit(ones: Sequence[Compilation], start: Place, told: Iterable[Mapping[str, object]]) -> RecompileLimit | None:
    """Dynamo gave up where it had reasons to compile once more and did not begin: so many versions there are then.

    A recording of Inductoscope's has the limit itself.
    """
    gave_up = next((one for one in ones if one.gave_up), None)
    if gave_up is None:
        return None
    function = gave_up.function
    here = (fields for fields in told if (fields.get("file"), fields.get("line")) == (function.file, function.line))
    limits = (str(fields.get("limit")) for fields in here)
    limit = next((int(text) for text in limits if text.isdecimal()), gave_up.nth)
    return RecompileLimit(limit, start.function or "?", start.file, start.line)


def _pinned(ones: Iterable[Compilation], places: Places) -> Iterator[Specialization]:
    for one in ones:
        for pinned in one.pinned:
            at = places.of(pinned.frames[-1]) if pinned.frames else None
            yield Specialization(
                plain(pinned.source), pinned.value, pinned.reason, at.file if at else None, at.line if at else None
            )


def _guards(ones: Iterable[Compilation], places: Places) -> Iterator[GuardFact]:
    for one in ones:
        if one.guards is not None:
            files = [frame.file for frame in one.stack if frame.is_user]
            yield from guard_tree.guards(one.id, one.guards.text(), files, places)


def _wrappers(ones: Iterable[Compilation]) -> Iterator[Wrapper]:
    for one in ones:
        for text in one.codes:
            code = text.payload.text()
            language = "cpp" if text.name.endswith(".cpp") else "python"
            yield Wrapper(one.id, codes.phase_of(code), language, code)


def _device(ones: Iterable[Compilation]) -> str | None:
    """Where it ran, by its first wrapper, else by its first graph."""
    for one in ones:
        texts = [text.payload.text() for text in (*one.codes[:1], *one.graphs[:1])]
        if found := codes.device_of(texts):
            return found
    return None


def _cudagraphs(ones: Iterable[Compilation]) -> CudaGraphs:
    reasons = (one.metrics.get("cudagraph_skip_reason") for one in ones)
    reason = next((str(reason) for reason in reasons if reason), None)
    return CudaGraphs("skipped", reason) if reason else CudaGraphs()


def _caches(ones: Iterable[Compilation]) -> Iterator[CacheFact]:
    for one in ones:
        for event in one.caches:
            details = event.details()
            reason = details.get("cache_bypass_reason") or details.get("bypass_reason")
            because = (str(reason).partition("\n")[0],) if reason else ()
            key = details.get("key")
            yield CacheFact(
                event.cache.removesuffix("_cache"),
                event.result,
                because,
                one.id,
                key if isinstance(key, str) else None,
            )


def _phases(ones: Iterable[Compilation]) -> Iterator[PhaseTime]:
    """Each compilation with what is inside of it: Dynamo's time has the backend in it, that has Inductor's."""
    index = 0
    for one in ones:
        whole = one.microseconds("duration_us") or 1e6 * one.microseconds("entire_frame_compile_time_s")
        if not whole:
            continue
        yield PhaseTime("compile", whole / 1e3, graph=one.id)
        parent = index
        index += 1
        for name, field in _PHASES[1:]:
            took = one.microseconds(field)
            if took:
                yield PhaseTime(name, took / 1e3, parent=parent, graph=one.id)
                parent = index
                index += 1


def _error(one: Compilation, start: Place, places: Places) -> findings.Trouble:
    """What a compilation failed with, on the user's line where torch tells one."""
    text = one.error.text() if one.error is not None else ""
    kind = str(one.metrics.get("fail_type") or "")
    line, file = one.metrics.get("fail_user_frame_lineno"), one.metrics.get("fail_user_frame_filename")
    at = start
    if isinstance(line, int) and isinstance(file, str) and Frame(file, line, "?").is_user:
        at = replace(places.of(Frame(file, line, start.function or "?")), function=start.function)
    told = _told(text, str(one.metrics.get("fail_reason") or ""))
    return findings.Trouble(at, f"Compiling failed with {kind or 'an error'}: {told}", one.id)


def _told(text: str, reason: str) -> str:
    """The first sentence of an exception's message."""
    found = [match["text"] for match in _LAST_LINE.finditer(text)]
    message = reason or (found[-1] if found else text.strip().rpartition("\n")[2])
    first = message.strip().partition("\n")[0].strip()
    return first if first.endswith((".", "!", "?")) else f"{first}."


def _skipped(processes: Iterable[Process], places: Places) -> tuple[SkippedFrame, ...]:
    """The user's functions that were left alone; only a recording of Inductoscope's has them."""
    found: dict[SkippedFrame, None] = {}
    for process in processes:
        for fields in process.skipped:
            frame = _written(fields)
            if frame is not None and frame.is_user:
                at = places.function(frame)
                found[SkippedFrame(frame.function, at.file, at.line, str(fields.get("reason") or "").rstrip("."))] = (
                    None
                )
    return tuple(found)


def _written(fields: Mapping[str, object]) -> Frame | None:
    file, line, function = fields.get("file"), fields.get("line"), fields.get("function")
    return Frame(file, line, str(function)) if isinstance(file, str) and isinstance(line, int) else None


def _left_alone(frame: SkippedFrame, places: Places) -> TargetReport:
    name = places.title(Place(frame.file, frame.line, frame.function))
    message = f"`{frame.function}` was skipped ({frame.reason}). It runs as if torch.compile were not there."
    report = TargetReport(
        frame.file, name, frame.line, "unknown", Rung.CAPTURE, Status.EAGER, message, skipped=(frame,)
    )
    return replace(report, findings=findings.of(report, (), places))
