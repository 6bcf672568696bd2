"""Programs that take their worker down time after time: they are left alone for a while, longer each time.

Until then edits, saves and changes on disk do not start them; whoever asks for a check gets one.  Pure functions of a
target's view.
"""

from __future__ import annotations

from dataclasses import replace

from inductoscope.protocol.messages import FailureKind
from inductoscope.server.snapshot import TargetView
from inductoscope.server.workers.run import RunOutcome

AFTER = 3
"""So many runs in a row have to end so before a target rests."""
FIRST_S, LONGEST_S = 30.0, 600.0
"""How long it rests at first, and at most; it doubles each time."""

_TAKES_DOWN = {FailureKind.CRASH, FailureKind.TIMEOUT, FailureKind.MEMORY}


def after_run(view: TargetView, outcome: RunOutcome, now: float) -> TargetView:
    """With one run more counted; any other end of a run ends the row."""
    if outcome.failure is None or outcome.failure.kind not in _TAKES_DOWN:
        return replace(view, crashes=0, rests_until=0.0)
    crashes = view.crashes + 1
    rest = min(FIRST_S * 2 ** (crashes - AFTER), LONGEST_S) if crashes >= AFTER else 0.0
    return replace(view, crashes=crashes, rests_until=now + rest)


def left_s(view: TargetView, now: float) -> float:
    """For how many seconds more a target rests; 0 or less when it does not."""
    return view.rests_until - now
