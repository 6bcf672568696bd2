"""Findings and spans on whole lines, for facts that know a line and no columns."""

from __future__ import annotations

import linecache
from typing import Any

from inductoscope.protocol.codes import CODES
from inductoscope.protocol.report import Finding, Place, Rung, Severity, Span


def line_span(file: str, line: int) -> Span:
    """The text of one line, without its indentation; an empty span where the text is not known."""
    text = linecache.getline(file, line).rstrip()
    return Span(file, line, len(text) - len(text.lstrip()), line, len(text))


def finding(
    code: str, span: Span, message: str, rung: Rung, *, severity: Severity | None = None, **more: Any
) -> Finding:
    """A finding at `span`, as loud as its code says unless `severity` is given; `more` are fields of `Finding`."""
    return Finding(
        code=code,
        severity=severity or CODES[code].severity,
        file=span.file,
        line=span.line,
        column=span.column,
        end_line=span.end_line,
        end_column=span.end_column,
        message=message,
        rung=rung,
        **more,
    )


def finding_at(code: str, place: Place, message: str, rung: Rung, **more: Any) -> Finding:
    """A finding on the whole line of `place`."""
    return finding(code, line_span(place.file, place.line), message, rung, function=place.function, **more)
