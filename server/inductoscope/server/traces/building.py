"""From what was read to one value: the whole report of a trace."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from inductoscope.protocol._version import __version__
from inductoscope.server import words
from inductoscope.server.traces import across_ranks, events, misses, reading, reports, views
from inductoscope.server.traces.compilations import Compilation, Text
from inductoscope.server.traces.places import Places
from inductoscope.server.traces.process import Process
from inductoscope.server.traces.reading import Source
from inductoscope.server.traces.records import Payload
from inductoscope.server.traces.reports import Asked, Detail
from inductoscope.server.traces.run import ArtifactFact, ProcessFacts, TraceReport


@dataclass(frozen=True)
class Artifact:
    """A text of the trace that can be written out."""

    fact: ArtifactFact
    payload: Payload


def build(path: Path, sources: Sequence[Source], folder: Path, asked: Asked) -> TraceReport:
    """Everything that a trace tells; `folder` is where sources of another machine are looked for."""
    processes = processes_of(sources)
    places = Places(folder)
    targets = reports.reports(processes, places, asked)
    return TraceReport(
        inductoscope=__version__,
        source=source_name(processes),
        path=str(path),
        torch=_first(one.torch for one in processes),
        triton=_first(one.triton for one in processes),
        python=_first(one.python for one in processes),
        processes=tuple(map(_process, processes)),
        targets=targets,
        breaks=views.distinct_breaks(processes, places),
        calls=views.calls(processes, places),
        stories=views.stories(processes, places),
        costs=views.costs(processes, places),
        phases=events.phases(processes) if Detail.PHASES in asked.details else (),
        cache_misses=tuple(misses.misses(processes, places)),
        differences=tuple(across_ranks.differences(processes, places)),
        collectives=across_ranks.collectives(processes, places),
        artifacts=tuple(one.fact for one in artifacts(processes)),
        links=tuple(link for one in processes for link in one.links),
        records=dict(_summed(one.records for one in processes)),
        unknown=dict(_summed(one.unknown for one in processes)),
        problems=tuple(reading.problems(sources)),
        notes=tuple(_notes(places)),
    )


def processes_of(sources: Sequence[Source]) -> list[Process]:
    """The processes of all files, ranks first, in the order in which they began."""
    found = [process for source in sources for process in source.processes.values()]
    return sorted(found, key=lambda one: (one.rank is None, one.rank or 0, one.date, one.first, one.began_s or 0.0))


def source_name(processes: Sequence[Process]) -> str:
    """Where facts come from, in a few words: `trace of 14:02`, with the day where it spans several.

    What Inductoscope itself recorded is a `run of 14:02`.
    """
    times = sorted((one.date, one.first) for one in processes if one.first)
    if not times:
        return "trace"
    days = {date for date, _ in times}
    date, clock = times[0]
    day = f" on {date[:2]}-{date[2:]}" if len(days) > 1 else ""
    what = "run" if any(one.command for one in processes) else "trace"
    return f"{what} of {clock[:5]}{day}"


def artifacts(processes: Sequence[Process]) -> Iterator[Artifact]:
    """Every text of the trace, in order."""
    number = 0
    for process in processes:
        for one in process.compilations:
            for text in _texts(one):
                fact = ArtifactFact(number, text.name, one.id, process.label, text.payload.bytes)
                yield Artifact(fact, text.payload)
                number += 1


def _texts(one: Compilation) -> Iterator[Text]:
    yield from one.graphs
    if one.guards is not None:
        yield Text("dynamo_cpp_guards_str", one.attempts, one.guards)
    yield from one.breaks
    if one.reasons is not None:
        yield Text("recompile_reasons", 0, one.reasons)
    if one.error is not None:
        yield Text("dynamo_error", one.attempts, one.error)
    yield from (Text(f"{event.cache}_{event.result}", 0, event.payload) for event in one.caches)
    yield from (Text("inductor_output_code", text.attempt, text.payload) for text in one.codes)
    yield from one.texts


def _process(process: Process) -> ProcessFacts:
    return ProcessFacts(
        label=process.label,
        file=str(process.file),
        number=process.number,
        rank=process.rank,
        torch=process.torch,
        python=process.python,
        began=process.first,
        ended=process.last,
        compilations=sum(one.id != "-" for one in process.compilations),
        command=process.command,
    )


def _notes(places: Places) -> Iterator[str]:
    if places.moved:
        number = words.count(len(places.moved), "line")
        yield f"{number} of the trace moved since: they are shown where their text stands now."
    if places.lost:
        number = words.count(len(places.lost), "line")
        yield f"{number} of the trace are not in the sources any more: they are shown where they were."


def _first(values: Iterable[str | None]) -> str | None:
    return next((value for value in values if value), None)


def _summed(counters: Iterable[Counter[str]]) -> Counter[str]:
    total: Counter[str] = Counter()
    for one in counters:
        total.update(one)
    return total
