"""Pauses in typing after which targets are run: the longer a run takes, the longer the pause."""

from __future__ import annotations

import functools
from collections.abc import Callable

from inductoscope.server.clock import Clock, Timer

SHORTEST_S, LONGEST_S = 0.3, 3.0
SHARE = 0.5
"""The pause as a part of what the last run took, between the bounds."""


class Pauses:
    """One pause for each file that is being typed in; `over` is called with its path."""

    def __init__(self, clock: Clock, over: Callable[[str], None]) -> None:
        self._clock = clock
        self._over = over
        self._timers: dict[str, Timer] = {}

    def begin(self, path: str, took_s: float) -> None:
        """Somebody typed in a file whose targets take so many seconds to run."""
        self.stop(path)
        pause = min(max(SHORTEST_S, took_s * SHARE), LONGEST_S)
        self._timers[path] = self._clock.call_later(pause, functools.partial(self._end, path))

    def stop(self, path: str) -> None:
        """Do not wait any more."""
        timer = self._timers.pop(path, None)
        if timer is not None:
            timer.cancel()

    def is_waiting(self, path: str) -> bool:
        """Whether a pause goes on."""
        return path in self._timers

    def close(self) -> None:
        """Stop all."""
        for path in list(self._timers):
            self.stop(path)

    def _end(self, path: str) -> None:
        self.stop(path)
        self._over(path)
