"""What `--fail-on` lets through."""

from __future__ import annotations

import pytest

from inductoscope.protocol.report import Finding, Rung, Severity
from inductoscope.server.gate import GateError, parse


def finding(code: str, severity: Severity) -> Finding:
    return Finding(code, severity, "m.py", 1, 0, 1, 1, "said", Rung.CAPTURE)


BREAK = finding("graph-break", Severity.WARNING)
RECOMPILE = finding("recompile", Severity.INFORMATION)
FAILED = finding("compile-error", Severity.ERROR)


@pytest.mark.parametrize(
    ("text", "stopped"),
    [
        ("", []),
        ("break", [BREAK]),
        ("graph-break, recompile", [BREAK, RECOMPILE]),
        ("error", [FAILED]),
        ("warning", [BREAK, FAILED]),
        ("any", [BREAK, RECOMPILE, FAILED]),
        ("recompile,error", [RECOMPILE, FAILED]),
    ],
)
def test_names_and_severities(text: str, stopped: list[Finding]) -> None:
    gate = parse(text)
    assert [one for one in (BREAK, RECOMPILE, FAILED) if gate.stops([one])] == stopped


def test_a_name_of_nothing_is_a_sentence() -> None:
    with pytest.raises(GateError, match=r"--fail-on brake names no finding\. Is break meant\?"):
        parse("brake")
