"""Functions that Dynamo left alone, and what to say when nothing at all was compiled."""

from __future__ import annotations

from inductoscope.compiler.capture.findings import at_line
from inductoscope.compiler.compat import dynamo_stacks, skips
from inductoscope.compiler.usercode import UserCode
from inductoscope.protocol.messages import Target
from inductoscope.protocol.report import Finding, SkippedFrame


class SkipLog:
    """Collects the user's functions that were skipped; Dynamo also skips many library functions, which is its rule."""

    def __init__(self, user_code: UserCode, target: Target) -> None:
        self._user_code = user_code
        self._target = target
        self._skipped: dict[SkippedFrame, None] = {}

    def meet(self, event: skips.SkipEvent) -> None:
        """Take in one skipped frame."""
        place = dynamo_stacks.code_place(event.code)
        if self._user_code.is_user(place.file):
            self._skipped[SkippedFrame(place.function, place.file, place.line, _short(event.reason))] = None

    def skipped(self) -> tuple[SkippedFrame, ...]:
        """Each function and reason once."""
        return tuple(self._skipped)

    def nothing_compiled(self) -> tuple[Finding, ...]:
        """The finding for a run in which no graph was captured and nothing else says why."""
        reasons = "; ".join(f"`{frame.function}` was skipped ({frame.reason})" for frame in self._skipped)
        why = reasons or "no function of yours ran any operation that Dynamo could capture"
        message = f"Nothing of {self._target.name} was compiled: {why}. It runs as if torch.compile were not there."
        return (at_line("not-compiled", self._target.file, self._target.line, message),)


def _short(reason: str) -> str:
    """torch's reason without its general advice and without the function's own place."""
    return reason.partition("\n")[0].partition(" `torch.compile` will skip the frame")[0].rstrip(".")
