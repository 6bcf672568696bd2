"""What the user must know of a traced function, as findings: the same codes and lines as a check would tell."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from inductoscope.protocol.codes import CODES
from inductoscope.protocol.report import (
    Finding,
    GraphBreak,
    GuardFailure,
    Outcome,
    Place,
    Recompile,
    Related,
    Rung,
    Specialization,
    TargetReport,
)
from inductoscope.protocol.torch_texts.breaks import ended
from inductoscope.protocol.torch_texts.naming import plain
from inductoscope.server.traces.places import Places

_FOLLOWED = {
    Outcome.SPLIT: "The code before it is compiled by itself, and compiling begins anew after it.",
    Outcome.REST_EAGER: "What comes before it is compiled; the rest of the function runs uncompiled.",
    Outcome.FUNCTION_EAGER: "Nothing of the function is compiled.",
}
_UNREADABLE = {"identity": "object", "type": "type"}  # guards whose text holds only addresses


@dataclass(frozen=True)
class Trouble:
    """A compilation that failed, and where that is told."""

    place: Place
    message: str
    compile_id: str


def of(report: TargetReport, errors: Sequence[Trouble], places: Places) -> tuple[Finding, ...]:
    """Every finding of a function."""
    return tuple(_all(report, errors, places))


def guard_text(guard: GuardFailure) -> str:
    """A failed guard in words."""
    if guard.kind in _UNREADABLE:
        of_what = f" (of {guard.expected})" if guard.expected else ""
        return f"`{guard.source}` is no longer the same {_UNREADABLE[guard.kind]}{of_what}"
    return f"the guard `{plain(guard.text)}` failed"


def _all(report: TargetReport, errors: Sequence[Trouble], places: Places) -> Iterator[Finding]:
    for one in report.breaks:
        yield _break(one)
    yield from _recompiles(report.recompiles, places)
    if report.recompile_limit is not None:
        limit = report.recompile_limit
        yield _at(
            "recompile-limit",
            Place(limit.file, limit.line, limit.function),
            f"Dynamo gave up on `{limit.function}` after {limit.limit} versions. Calls that none of them fits run "
            "uncompiled, under fullgraph=True they raise. Make what its guards compare constant or dynamic, or raise "
            "the limit.",
            places,
        )
    for pinned in dict.fromkeys(report.specializations):
        yield _pinned(pinned, report, places)
    for error in errors:
        yield _at("compile-error", error.place, error.message, places)
    # What has a compiled version is told of as such; that it is left alone afterwards says the limit, or the error.
    for skipped in report.skipped if not report.graphs and not errors else ():
        message = f"`{skipped.function}` was not compiled: {ended(skipped.reason)}"
        yield _at("not-compiled", Place(skipped.file, skipped.line, skipped.function), message, places)


def _break(one: GraphBreak) -> Finding:
    inner = one.inner
    where = f"It is in {Path(inner.file).name}:{inner.line}, which this line leads to." if inner is not None else ""
    parts = (ended(f"Graph break: {one.reason}"), ended(one.explanation.partition("\n\n")[0]), where)
    message = " ".join(part for part in (*parts, _FOLLOWED[one.outcome]) if part)
    callers = [Related(place.file, place.line, "called from here") for place in one.frames[:-1]]
    return Finding(
        code="graph-break",
        severity=CODES["graph-break"].severity,
        file=one.file,
        line=one.line,
        column=one.column,
        end_line=one.end_line,
        end_column=one.end_column,
        message=message,
        rung=Rung.CAPTURE,
        id=one.code or None,
        link=one.link,
        count=one.count,
        related=tuple(dict.fromkeys(callers)),
        outcome=one.outcome,
        function=one.frames[-1].function if one.frames else None,
        hints=one.hints,
    )


def _recompiles(recompiles: Iterable[Recompile], places: Places) -> Iterator[Finding]:
    """One for each kind of guard and place."""
    alike: dict[tuple[Place, str], list[Recompile]] = {}
    for one in recompiles:
        if one.guards:
            guard = one.guards[0]
            made = Place(guard.file, guard.line, one.function) if guard.file and guard.line else None
            place = made or Place(one.file, one.line, one.function)
            alike.setdefault((place, guard.family), []).append(one)
    for (place, family), ones in alike.items():
        times = "" if len(ones) == 1 else f" {len(ones)} times"
        guard = ones[0].guards[0]
        message = f"Recompiled `{ones[0].function}`{times}: {guard_text(guard)}."
        hints = (guard.hint,) if guard.hint else ()
        yield _at("recompile", place, message, places, len(ones), family, hints)


def _pinned(pinned: Specialization, report: TargetReport, places: Places) -> Finding:
    place = Place(pinned.file or report.file, pinned.line or report.line)
    why = f" ({pinned.reason.replace('_', ' ')})" if pinned.reason else ""
    return _at("specialized", place, f"`{pinned.source}` was fixed to {pinned.value} here{why}.", places)


def _at(
    code: str,
    place: Place,
    message: str,
    places: Places,
    count: int = 1,
    family: str | None = None,
    hints: tuple[str, ...] = (),
) -> Finding:
    column, end_column = places.columns(place)
    return Finding(
        code=code,
        severity=CODES[code].severity,
        file=place.file,
        line=place.line,
        column=column,
        end_line=place.line,
        end_column=end_column,
        message=message,
        rung=Rung.CAPTURE,
        count=count,
        guard_family=family,
        function=place.function,
        hints=hints,
    )
