"""What torch warned about while it traced, on the user's line."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

from inductoscope.compiler.capture.findings import finding
from inductoscope.compiler.capture.spans import span_of
from inductoscope.compiler.compat import dynamo
from inductoscope.compiler.usercode import Frame, UserCode
from inductoscope.protocol.report import Finding

_LONGEST = 400  # characters; the full text is in the log


@dataclass(frozen=True)
class _Warning:
    category: str
    text: str
    at: Frame


class WarningLog:
    """Collects warnings.  One without a line of the user's is torch's own business and stays in the log."""

    def __init__(self, user_code: UserCode) -> None:
        self._user_code = user_code
        self._found: dict[_Warning, int] = {}

    def meet(self, event: dynamo.WarningEvent) -> None:
        """Take in one warning."""
        at = self._user_code.innermost(event.stack)
        if at is not None:
            warning = _Warning(event.category.__name__, _short(event.text), at)
            self._found[warning] = self._found.get(warning, 0) + 1

    def findings(self, broken: Container[tuple[str, int]]) -> tuple[Finding, ...]:
        """One finding a warning, but none for lines in `broken`: torch also warns of what breaks the graph there."""
        return tuple(
            finding("warning", span_of(one.at), f"{one.category}: {one.text}", count=count, function=one.at.function)
            for one, count in self._found.items()
            if (one.at.file, one.at.line) not in broken
        )


def _short(text: str) -> str:
    """The first paragraph, for torch adds stacks and advice on logging below."""
    text = " ".join(text.strip().split("\n\n")[0].split())
    return text if len(text) <= _LONGEST else text[:_LONGEST].rsplit(" ", 1)[0] + " …"
