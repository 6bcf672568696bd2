"""Why no honest figure can be given: a sentence for the user.  Must not know how anything is measured."""

from __future__ import annotations


class RefusedError(Exception):
    """Measuring makes no sense or failed; the message is one or two sentences for the user."""


def in_short(error: BaseException) -> str:
    """The type of an exception and the first line of its message, with the next one where a line ends in a colon."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if not lines:
        return type(error).__name__
    short = " ".join(lines[:2]) if lines[0].endswith(":") else lines[0]
    return f"{type(error).__name__}: {short.rstrip('.')}"
