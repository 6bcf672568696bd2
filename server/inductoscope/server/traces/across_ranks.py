"""Ranks that differ, and where; and the collectives inside of captured graphs.

Ranks of one program should compile the same things: a rank with another graph, or another order of collectives, waits
for the others for ever, or computes something else.  A compilation of one rank is compared with that of the same
function and the same id on the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from inductoscope.server.traces import codes
from inductoscope.server.traces.break_records import breaks_of
from inductoscope.server.traces.compilations import Compilation
from inductoscope.server.traces.functions import Key, by_function
from inductoscope.server.traces.places import Places
from inductoscope.server.traces.process import Process, ranks
from inductoscope.server.traces.run import CollectiveFact, Difference
from inductoscope.server.traces.views import cache_answer

NONE = "nothing"
"""The value of a rank that does not have what others have."""


def differences(processes: Sequence[Process], places: Places) -> Iterator[Difference]:
    """Everything that is not the same on all ranks, function by function."""
    by_rank = ranks(processes)
    if len(by_rank) < 2:
        return
    found = {rank: by_function([process]) for rank, process in sorted(by_rank.items())}
    keys = dict.fromkeys(key for functions in found.values() for key in functions)
    for key in keys:
        start = places.function(key.frame)
        for what, tell in _ASPECTS:
            values = {rank: tell(functions.get(key, []), places) for rank, functions in found.items()}
            grouped = _grouped(values)
            if len(grouped) > 1:
                yield Difference(what, places.title(start), start.file, start.line, grouped)
    yield from _orders(by_rank, places)


def _orders(by_rank: dict[int, Process], places: Places) -> Iterator[Difference]:
    """Whether all ranks have the same collectives in the same order, over all graphs."""
    values = {
        rank: ", ".join(
            one.name for compilation in process.compilations for one in codes.collectives(compilation, places)
        )
        or NONE
        for rank, process in sorted(by_rank.items())
    }
    grouped = _grouped(values)
    if len(grouped) > 1:
        yield Difference("order of collectives", None, None, None, grouped)


def _names(process: Process, places: Places) -> Iterator[str]:
    for one in process.compilations:
        yield from (found.name for found in codes.collectives(one, places))


def _grouped(values: dict[int, str]) -> dict[str, tuple[int, ...]]:
    grouped: dict[str, tuple[int, ...]] = {}
    for rank, value in values.items():
        grouped[value] = (*grouped.get(value, ()), rank)
    return grouped


def _compile_ids(ones: Sequence[Compilation], _: Places) -> str:
    return ", ".join(one.id for one in ones) or NONE


def _operators(ones: Sequence[Compilation], _: Places) -> str:
    counts = (one.metrics.get("graph_op_count") for one in ones)
    return ", ".join("?" if count is None else str(count) for count in counts) or NONE


def _breaks(ones: Sequence[Compilation], places: Places) -> str:
    return "; ".join(f"{one.reason} (line {one.line})" for one in breaks_of(ones, places)) or NONE


def _caches(ones: Sequence[Compilation], _: Places) -> str:
    return ", ".join(answer for one in ones if (answer := cache_answer(one)) is not None) or NONE


_ASPECTS: tuple[tuple[str, Callable[[Sequence[Compilation], Places], str]], ...] = (
    ("compilations", _compile_ids),
    ("graph breaks", _breaks),
    ("operators in the graphs", _operators),
    ("cache", _caches),
)


def collectives(processes: Sequence[Process], places: Places) -> tuple[CollectiveFact, ...]:
    """Each collective in a graph, with the processes that have it there."""
    found: dict[tuple[object, ...], CollectiveFact] = {}
    for process in processes:
        for key, ones in by_function([process]).items():
            title = _title(key, places)
            for one in ones:
                for at, collective in enumerate(codes.collectives(one, places)):
                    which = (one.id, title, at, collective.name, collective.file, collective.line)
                    before = found.get(which)
                    labels = (*(before.processes if before else ()), process.label)
                    found[which] = CollectiveFact(
                        collective.name, one.id, title, collective.file, collective.line, labels
                    )
    return tuple(found.values())


def _title(key: Key, places: Places) -> str:
    return places.title(places.function(key.frame))
