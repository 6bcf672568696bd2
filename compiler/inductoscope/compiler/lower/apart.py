"""Why neighbouring kernels stayed apart: the scheduler's own reason for each pair.

Neighbours are kernels that are called one after the other, that make and use the same buffer, or that read the same
one.  Where the scheduler tried a pair, its last reason counts.  Pairs that it did not try it is asked about.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from inductoscope.compiler.compat import scheduling as compat
from inductoscope.compiler.lower.recording import Compilation

EXTERN = "extern kernel: a library call is not fused"
ELSEWHERE = "different graphs"
ONE_COMBO = "one combo, written as several kernels"
NO_DATA = "no shared data"

_ALL_READERS = 8
"""Of a buffer with more readers than this (a mask, a position) only readers that follow one another are neighbours."""

_MOST_QUESTIONS = 2000
"""Questions to the scheduler for one graph, each well under a millisecond."""

_MOST_PAIRS = 9
"""Pairs of nodes that are asked about for one pair of kernels."""

Pair = tuple[int, int]


def reasons_apart(noted: Compilation) -> dict[int, dict[int, str]]:
    """For each call, by its place in the order of calls, its neighbours and why they are kernels of their own."""
    told = _told(noted)
    questions = itertools.count()
    apart: dict[int, dict[int, str]] = {}
    for one, other in sorted({*told, *_neighbours(noted)}):
        reason = told.get((one, other)) or _without_asking(noted, one, other)
        if reason is None and next(questions) < _MOST_QUESTIONS:
            reason = _asked(noted, one, other)
        if reason is not None:
            apart.setdefault(one, {})[other] = reason
            apart.setdefault(other, {})[one] = reason
    return apart


def _told(noted: Compilation) -> dict[Pair, str]:
    """The scheduler's last reason for each pair of calls that it tried to fuse and that ended up apart.

    Templates are tried the wrong way round too, so a reason in the order of calls counts for more.
    """
    owner = {leaf.get_name(): at for at, call in enumerate(noted.calls) for leaf in call.nodes}
    last: dict[Pair, str] = {}
    backwards: dict[Pair, str] = {}
    for rejection in noted.rejections:
        one, other = _owner(owner, rejection.first), _owner(owner, rejection.second)
        if one is not None and other is not None and one != other:
            (last if one < other else backwards)[min(one, other), max(one, other)] = rejection.reason
    return {**backwards, **last}


def _owner(owner: dict[str, int], names: frozenset[str]) -> int | None:
    """The one call that all these operations ended up in, or None."""
    calls: set[Any] = {owner.get(name) for name in names}
    return calls.pop() if len(calls) == 1 else None


def _neighbours(noted: Compilation) -> Iterator[Pair]:
    yield from itertools.pairwise(range(len(noted.calls)))
    makers: dict[tuple[int, str], int] = {}
    readers: dict[tuple[int, str], list[int]] = {}
    for at, call in enumerate(noted.calls):
        for leaf in call.nodes:
            graph = id(leaf.scheduler)  # graphs inside of graphs name their buffers anew
            makers.update({(graph, name): at for name in compat.buffers_made(leaf)})
            for name in compat.buffers_read(leaf):
                known = readers.setdefault((graph, name), [])
                if at not in known:
                    known.append(at)
    for buffer, users in readers.items():
        maker = makers.get(buffer)
        yield from ((min(maker, user), max(maker, user)) for user in users if maker is not None and maker != user)
        few = len(users) <= _ALL_READERS
        yield from itertools.combinations(users, 2) if few else itertools.pairwise(users)


def _without_asking(noted: Compilation, one: int, other: int) -> str | None:
    first, second = noted.calls[one], noted.calls[other]
    if first.extern or second.extern:
        return EXTERN
    if _final(noted, one) == _final(noted, other):
        return ONE_COMBO
    if first.nodes[0].scheduler is not second.nodes[0].scheduler:
        return ELSEWHERE
    return None


def _asked(noted: Compilation, one: int, other: int) -> str:
    """The scheduler's answer; for C++ kernels of several nodes, the one for the first two that have data in common."""
    pairs = itertools.product(_final(noted, one), _final(noted, other))
    answers = [compat.why_apart(first, second) for first, second in itertools.islice(pairs, _MOST_PAIRS)]
    return next((answer for answer in answers if answer != NO_DATA), answers[0])


def _final(noted: Compilation, at: int) -> list[Any]:
    return list(dict.fromkeys(map(compat.final_node, noted.calls[at].nodes)))
