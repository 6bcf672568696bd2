"""Findings of this rung, made in one way."""

from __future__ import annotations

from inductoscope.compiler import marks
from inductoscope.protocol.report import Finding, Place, Related, Rung


def finding(
    code: str, place: Place, message: str, *, count: int = 1, related: tuple[Related, ...] = (), hint: str | None = None
) -> Finding:
    """A finding of rung `lower` on a whole line: Inductor's nodes know lines, not columns."""
    hints = (hint,) if hint else ()
    return marks.finding_at(code, place, message, Rung.LOWER, count=count, related=related, hints=hints)


def callers(chain: tuple[Place, ...]) -> tuple[Related, ...]:
    """The call chain above the innermost user line, outermost first."""
    return tuple(Related(frame.file, frame.line, "called from here") for frame in chain[:-1])
