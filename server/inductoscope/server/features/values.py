"""What a line makes, looked up in a report."""

from __future__ import annotations

from inductoscope.protocol.report import TargetReport, ValueFact


def on_line(report: TargetReport, path: str, line: int) -> list[ValueFact]:
    """What a line (of the text that was compiled) makes, variables first."""
    here = (fact for fact in report.values if (fact.file, fact.line) == (path, line))
    return sorted(here, key=lambda fact: fact.name is None)
