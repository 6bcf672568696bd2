"""What a line holds compiled code to: the guards that it made, and what other sizes of the inputs would do.

The line of a definition tells of its arguments; any other line tells of what it decides.
"""

from __future__ import annotations

from collections.abc import Iterator

from inductoscope.protocol.report import DimensionState, GuardFact, TargetReport
from inductoscope.server import sizes
from inductoscope.server.features.markup import Block, Heading, Points

LISTED = 8
"""Guards of a line that are written out; `inductoscope guards FILE --line N` has them all."""


def cards(report: TargetReport, path: str, line: int) -> Iterator[Block]:
    """The cards of a line (of the text that was compiled)."""
    definition = (path, line) == (report.file, report.line)
    found = [probe for probe in report.probes if not sizes.is_quiet(probe)]
    told = [probe for probe in found if definition or (probe.file, probe.line) == (path, line)]
    if told:
        yield Heading("Other sizes of the inputs")
        yield Points(tuple(sizes.sentence(probe, path) for probe in told))
    yield from _guards(report, path, line)


def _guards(report: TargetReport, path: str, line: int) -> Iterator[Block]:
    here = [guard for guard in report.guards if not guard.internal and (guard.file, guard.line) == (path, line)]
    listed = [*_described(here), *_pinned(report, path, line)]
    if not listed:
        return
    more = [f"and {len(listed) - LISTED} more"] if len(listed) > LISTED else []
    yield Heading("Used again as long as")
    yield Points((*listed[:LISTED], *more))


def _described(guards: list[GuardFact]) -> list[str]:
    """One text for each source whose parts are compared, one for each other guard, each text once."""
    parts: dict[tuple[str, str], list[str]] = {}
    for guard in guards:
        what = guard.text if guard.text is not None else f"{guard.kind} {guard.expected}"
        about = "" if guard.text is not None else guard.source
        parts.setdefault((guard.compile_id, about), []).append(what)
    texts = [
        text for (_, about), whats in parts.items() for text in ([f"{about}: {', '.join(whats)}"] if about else whats)
    ]
    return list(dict.fromkeys(texts))


def _pinned(report: TargetReport, path: str, line: int) -> Iterator[str]:
    """The dimensions that this line pins."""
    for one in report.dimensions:
        if one.state is DimensionState.PINNED and any((at.file, at.line) == (path, line) for at in one.limits):
            yield f"{one.source}.shape[{one.dim}] is {one.size}, which this line needs (version {one.compile_id})"
