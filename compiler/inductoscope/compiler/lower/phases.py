"""Wall time by phase, each moment counted once, for the innermost phase that is running."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator

from inductoscope.protocol.report import PhaseTime


class Stopwatch:
    """Adds up the seconds of named, possibly nested phases.  `clock` gives seconds and never goes back."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._running: list[str] = []
        self._seconds: dict[str, float] = {}
        self._since = 0.0

    @contextlib.contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Time spent inside the block belongs to `name`, except what an inner phase claims."""
        self._charge()
        self._running.append(name)
        try:
            yield
        finally:
            self._charge()
            self._running.pop()

    def times(self) -> tuple[PhaseTime, ...]:
        """All phases so far, in the order in which they first ended or were interrupted."""
        return tuple(PhaseTime(name, round(seconds * 1e3, 3)) for name, seconds in self._seconds.items())

    def _charge(self) -> None:
        now = self._clock()
        if self._running:
            name = self._running[-1]
            self._seconds[name] = self._seconds.get(name, 0.0) + now - self._since
        self._since = now
