"""One question of the shape probe: the program is called at a second and at a third size, and Dynamo watched.

Runs in a process that is thrown away, after a call with the given sizes compiled the program there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from inductoscope.compiler import failures
from inductoscope.compiler.capture.facts import CaptureFacts
from inductoscope.compiler.probing.groups import Member
from inductoscope.compiler.usercode import UserCode
from inductoscope.protocol.report import (
    Dimension,
    DimensionLimit,
    DimensionState,
    Finding,
    GuardFailure,
    Probe,
    ProbeOutcome,
)

_SIZE = re.compile(r"\.size\(\)\[(\d+)\]")
_MEASURED = re.compile(r"[\w.\[\]']+\.(?:size|stride)\(\)\[\d+\]")
_EVERY_SIZE = re.compile(r"[0-2] <= \S+")
_RANGE = re.compile(r"-?\d+ <=? ")  # `2 <= x.shape[0] <= 16`
_MOST_CONDITIONS = 3
# What an operator said of the sizes, inside of what Dynamo says of the operator (2.11 to 2.15).
_TOLD = re.compile(r"got (?P<type>\w+)\((?P<quote>['\"])(?P<text>.*?)(?P=quote)\)", re.S)


@dataclass(frozen=True)
class Seen:
    """What one call did: `error` is what the program raised, `finding` the same where compiling raised it."""

    facts: CaptureFacts
    error: BaseException | None = None
    finding: Finding | None = None

    @property
    def compiled(self) -> tuple[str, ...]:
        """The versions that the call compiled, in order."""
        graphs = (graph.id for graph in self.facts.graphs)
        return tuple(dict.fromkeys((*graphs, *(one.compile_id for one in self.facts.recompiles))))


@dataclass(frozen=True)
class Named:
    """The dimensions that a trial changes, as the user knows them, with the size that they were given."""

    sources: tuple[str, ...]
    members: tuple[Member, ...]
    size: int

    @property
    def together(self) -> tuple[str, ...]:
        """All but the first, in the user's words."""
        return tuple(
            f"{source}.shape[{one.dim}]" for source, one in zip(self.sources[1:], self.members[1:], strict=True)
        )


def tried(named: Named, call: Callable[[int], Seen], user_code: UserCode) -> Probe:
    """The answer; `call` makes the call with every member at its second (0) or third (1) size."""
    second = call(0)
    if second.error is not None:
        return _fails(named, second, user_code)
    third = call(1)
    if third.error is not None:
        return _fails(named, third, user_code)
    if not second.compiled and not third.compiled:
        return _probe(named, ProbeOutcome.REUSED, "the compiled code serves other sizes as it is")
    if not third.compiled:
        return _dynamic(named, second)
    return _again(named, second, third)


def _fails(named: Named, seen: Seen, user_code: UserCode) -> Probe:
    assert seen.error is not None
    at: object | None = seen.finding or failures.innermost(seen.error, user_code.is_user)
    told = _TOLD.search(failures.text_of(seen.error))
    said = f"{told['type']}: {told['text'].rstrip('.')}" if told else failures.describe(seen.error)
    return _probe(named, ProbeOutcome.FAILS, f"the program raises at another size: {said}", (), at)


def _dynamic(named: Named, second: Seen) -> Probe:
    """One more compilation served the third size too.

    What bounds a size after a graph break is said of the values there, so of several graphs no bounds are claimed.
    """
    times = len(second.compiled)
    limits = tuple(_limits(second.facts.dimensions, named))
    texts = list(dict.fromkeys(_SIZE.sub(r".shape[\1]", limit.text) for limit in limits))
    bounds = _listed(texts)
    from_2 = "" if any(map(_RANGE.match, texts)) else " from 2 on"  # which is torch's own bound of every size
    which = f"every size{from_2}{f' with {bounds}' if bounds else ''}"
    if times > 1:
        which = f"other sizes too{f' ({bounds})' if bounds else ''}"
    once = "compiles once more, which then serves" if times == 1 else f"compiles {times} more graphs, which then serve"
    at = next((limit for limit in limits if limit.line is not None), None)
    return _probe(named, ProbeOutcome.DYNAMIC, f"another size {once} {which}", _guards(second), at)


def _listed(conditions: list[str]) -> str:
    """The simplest conditions, and how many there are besides."""
    shown = sorted(sorted(conditions, key=len)[:_MOST_CONDITIONS], key=conditions.index)
    rest = len(conditions) - len(shown)
    if rest:
        shown.append(f"{rest} more {'condition' if rest == 1 else 'conditions'}")
    return " and ".join(shown)


def _again(named: Named, second: Seen, third: Seen) -> Probe:
    """A third size is compiled too: because a line needs the one size, or for some other reason."""
    guards = _guards(third)
    pinned = [one for one in _of(second.facts.dimensions, named) if one.state is DimensionState.PINNED]
    if pinned:
        at = next((limit for one in pinned for limit in one.limits if limit.line is not None), None)
        what = f"{pinned[0].source}.shape[{pinned[0].dim}]"
        by = "the line needs" if at is not None else "torch needs"
        message = f"each size compiles again: {by} the value of {what}"
        return _probe(named, ProbeOutcome.PINNED, message, guards, at)
    why = f", since {guards[0].text}" if guards else ""
    at_guard = next((guard for guard in guards if guard.line is not None), None)
    return _probe(named, ProbeOutcome.RECOMPILES, f"a third size compiles again{why}", guards, at_guard)


def _guards(seen: Seen) -> tuple[GuardFailure, ...]:
    """The first failed guard of each recompilation: the one of the newest version."""
    return tuple(dict.fromkeys(one.guards[0] for one in seen.facts.recompiles if one.guards))


def _of(dimensions: Iterable[Dimension], named: Named) -> list[Dimension]:
    wanted = {(source, one.dim) for source, one in zip(named.sources, named.members, strict=True)}
    return [one for one in dimensions if (one.source, one.dim) in wanted]


def _limits(dimensions: Iterable[Dimension], named: Named) -> Iterator[DimensionLimit]:
    """What the size is held to; no news are the bound that torch makes of every size, and equal sizes."""
    for one in _of(dimensions, named):
        for limit in one.limits:
            if len(set(_MEASURED.findall(limit.text))) == 1 and not _EVERY_SIZE.fullmatch(limit.text):
                yield limit


def _probe(
    named: Named,
    outcome: ProbeOutcome,
    message: str,
    guards: tuple[GuardFailure, ...] = (),
    at: object | None = None,
) -> Probe:
    first = named.members[0]
    return Probe(
        source=named.sources[0],
        dim=first.dim,
        size=named.size,
        tried=first.second,
        outcome=outcome,
        message=message,
        guards=guards,
        together=named.together,
        file=getattr(at, "file", None),
        line=getattr(at, "line", None),
    )
