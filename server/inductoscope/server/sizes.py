"""What other sizes of a target's inputs would do, in words.

Knows the report and no surface.
"""

from __future__ import annotations

from collections.abc import Iterator

from inductoscope.protocol.report import Probe, ProbeOutcome, TargetReport
from inductoscope.server import words

_QUIET = frozenset({ProbeOutcome.FAILS, ProbeOutcome.UNKNOWN})
"""What only the full account tells: most dimensions that fail are ones that the program's weights fix."""

_SUMMED_UP = {
    ProbeOutcome.DYNAMIC: ("compiles once more, then other sizes fit", "compile once more each, then other sizes fit"),
    ProbeOutcome.REUSED: ("can have any size as it is compiled", "can have any size as they are compiled"),
    ProbeOutcome.PINNED: ("compiles again for each size", "compile again for each size"),
    ProbeOutcome.RECOMPILES: ("compiles again for further sizes", "compile again for further sizes"),
}


def summary(report: TargetReport) -> str | None:
    """All in one line: `x.shape[0] compiles once more, then other sizes fit; …`; None where there is nothing to say."""
    parts = []
    for outcome, (one, several) in _SUMMED_UP.items():
        here = [probe for probe in report.probes if probe.outcome is outcome]
        if here:
            named = [f"{dimension(probe)}{_bounded(probe, report.file)}" for probe in here]
            parts.append(f"{_listed(named)} {one if len(named) == 1 else several}")
    return "; ".join(parts) or None


def sentences(report: TargetReport) -> Iterator[str]:
    """One a dimension, those first that tell something of the program; then what there was no time for."""
    for probe in sorted(report.probes, key=is_quiet):
        yield sentence(probe, report.file)
    if report.untried is not None:
        yield report.untried


def sentence(probe: Probe, own: str) -> str:
    """`x.shape[0] with mask.shape[0]: another size compiles once more, … (tried 2 instead of 4; line 12)`."""
    place = f"; {words.lines([(probe.file, probe.line)], own)}" if probe.file and probe.line else ""
    together = f" with {_listed(list(probe.together))}" if probe.together else ""
    return f"{dimension(probe)}{together}: {probe.message} (tried {probe.tried} instead of {probe.size}{place})"


def dimension(probe: Probe) -> str:
    """`x.shape[0]`."""
    return f"{probe.source}.shape[{probe.dim}]"


def is_quiet(probe: Probe) -> bool:
    """Whether only who asks for it is told."""
    return probe.outcome in _QUIET


def _bounded(probe: Probe, own: str) -> str:
    """The line that a size has to keep to, or that needs it."""
    return f" ({words.lines([(probe.file, probe.line)], own)})" if probe.file and probe.line else ""


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
