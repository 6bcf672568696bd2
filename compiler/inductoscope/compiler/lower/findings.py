"""Findings of this rung, made in one way."""

from __future__ import annotations

from inductoscope.protocol.codes import CODES
from inductoscope.protocol.report import Finding, Place, Related, Rung


def finding(
    code: str, place: Place, message: str, *, count: int = 1, related: tuple[Related, ...] = (), hint: str | None = None
) -> Finding:
    """A finding of rung `lower` on a whole line: Inductor's nodes know lines, not columns."""
    return Finding(
        code=code,
        severity=CODES[code].severity,
        file=place.file,
        line=place.line,
        column=0,
        end_line=place.line,
        end_column=0,
        message=message,
        rung=Rung.LOWER,
        count=count,
        related=related,
        function=place.function,
        hints=(hint,) if hint else (),
    )


def callers(chain: tuple[Place, ...]) -> tuple[Related, ...]:
    """The call chain above the innermost user line, outermost first."""
    return tuple(Related(frame.file, frame.line, "called from here") for frame in chain[:-1])
