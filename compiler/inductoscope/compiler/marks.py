"""Findings and spans on whole lines, for facts that know a line and no columns."""

from __future__ import annotations

import linecache

from inductoscope.protocol.codes import CODES
from inductoscope.protocol.report import Finding, Place, Rung, Span


def line_span(file: str, line: int) -> Span:
    """The text of one line, without its indentation; an empty span where the text is not known."""
    text = linecache.getline(file, line).rstrip()
    return Span(file, line, len(text) - len(text.lstrip()), line, len(text))


def finding_at(code: str, place: Place, message: str, rung: Rung, count: int = 1) -> Finding:
    """A finding on the line of `place`, as loud as its code is by default."""
    span = line_span(place.file, place.line)
    return Finding(
        code=code,
        severity=CODES[code].severity,
        file=place.file,
        line=place.line,
        column=span.column,
        end_line=place.line,
        end_column=span.end_column,
        message=message,
        rung=rung,
        count=count,
        function=place.function,
    )
