"""`--fail-on`: which findings make a check fail."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass

from inductoscope.protocol.codes import CODES
from inductoscope.protocol.report import Finding, Severity, TargetReport
from inductoscope.server import missed_fusion

_SHORT = {"break": "graph-break", "sync": "device-sync", "spill": "register-spill", "slower": "slower-than-eager"}
_AT_LEAST = {
    "error": {Severity.ERROR},
    "warning": {Severity.ERROR, Severity.WARNING},
    "any": set(Severity),
}


class GateError(ValueError):
    """A name that stands for no finding; the message is a sentence."""


@dataclass(frozen=True)
class Gate:
    """Finding codes and severities that must not occur."""

    codes: frozenset[str] = frozenset()
    severities: frozenset[Severity] = frozenset()

    def names(self, finding: Finding) -> bool:
        """Whether a finding is one of those that must not occur."""
        return finding.code in self.codes or finding.severity in self.severities

    def considered(self, report: TargetReport) -> Iterator[Finding]:
        """All findings of a target, with those that are told only to whoever names their code."""
        yield from report.findings
        # Only by name: whoever forbids all hints does not mean what is told on request.
        if missed_fusion.CODE in self.codes:
            yield from missed_fusion.findings(report, lambda _file, _line: "")


def parse(text: str) -> Gate:
    """The gate for a list such as `break,recompile` or `warning`.  Raises `GateError`."""
    codes: set[str] = set()
    severities: set[Severity] = set()
    for name in filter(None, (part.strip() for part in text.split(","))):
        code = _SHORT.get(name, name)
        if name in _AT_LEAST:
            severities |= _AT_LEAST[name]
        elif code in CODES:
            codes.add(code)
        else:
            known = [*CODES, *_SHORT, *_AT_LEAST]
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"Is {close[0]} meant?" if close else f"Known are {', '.join(known)}."
            raise GateError(f"--fail-on {name} names no finding. {hint}")
    return Gate(frozenset(codes), frozenset(severities))
