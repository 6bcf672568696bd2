"""Time, behind an interface so that tests need not wait for it.  Counts in seconds."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol


class Timer(Protocol):
    """A timer that was set."""

    def cancel(self) -> None:
        """Forget it."""


class Clock(Protocol):
    """What the server needs of time."""

    def time(self) -> float:
        """Seconds since some moment."""

    def call_later(self, delay: float, callback: Callable[[], object]) -> Timer:
        """Call `callback` on the event loop after `delay`."""


class LoopClock:
    """The clock of the running event loop."""

    def time(self) -> float:
        """Seconds of the loop's monotonic clock."""
        return asyncio.get_running_loop().time()

    def call_later(self, delay: float, callback: Callable[[], object]) -> Timer:
        """A timer of the loop."""
        return asyncio.get_running_loop().call_later(delay, callback)
