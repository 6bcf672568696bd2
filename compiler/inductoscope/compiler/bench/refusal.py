"""Why no honest figure can be given: a sentence for the user.  Must not know how anything is measured."""

from __future__ import annotations


class RefusedError(Exception):
    """Measuring makes no sense or failed; the message is one or two sentences for the user."""


def first_line(error: BaseException) -> str:
    """The type of an exception and the first line of its message."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0].strip()}" if lines else type(error).__name__
