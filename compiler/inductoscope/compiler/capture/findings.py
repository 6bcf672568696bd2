"""Building findings, and telling each one once."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from inductoscope.compiler import marks
from inductoscope.protocol.report import Finding, Rung, Severity, Span


def finding(code: str, span: Span, message: str, *, severity: Severity | None = None, **more: Any) -> Finding:
    """A finding of the capture rung at `span`, as loud as its code says unless `severity` is given."""
    return marks.finding(code, span, message, Rung.CAPTURE, severity=severity, **more)


def at_line(code: str, file: str, line: int, message: str, **more: Any) -> Finding:
    """A finding that marks the text of a whole line."""
    return finding(code, marks.line_span(file, line), message, **more)


class Announcer:
    """Passes a finding on when it is first known.  What is learned later stands in the final list only."""

    def __init__(self, on_finding: Callable[[Finding], None]) -> None:
        self._on_finding = on_finding
        self._told: set[Hashable] = set()

    def tell(self, key: Hashable, found: Finding) -> None:
        """Pass `found` on unless something with this key was."""
        if key not in self._told:
            self._told.add(key)
            self._on_finding(found)
