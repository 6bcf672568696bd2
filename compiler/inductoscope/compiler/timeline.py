"""Where the wall time of a run goes: phases inside phases, each moment counted once at every depth.

Phases of one name, one parent and one compilation that have no parts of their own become one entry whose times add up,
so that a training loop does not fill the report.  Knows nothing of what the phases are.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from inductoscope.protocol.report import PhaseTime

OURS = "inductoscope"
"""The phase of what only observing costs: reading facts, copying graphs, sending reports."""

EAGER = "eager execution"
"""The phase of captured graphs that run op by op."""

UNCHANGED = "unchanged graph"
"""The phase of taking facts that an earlier run found out about the same graph."""

NOT_BEGUN = -1
"""What `begin` returns where there is nothing to end."""

_Key = tuple[str, "int | None", "str | None"]


@dataclass
class _Entry:
    """A phase: seconds since the timeline began, seconds of it that are over, and since when it runs again."""

    name: str
    start: float
    parent: int | None
    graph: str | None
    seconds: float = 0.0
    since: float | None = None
    has_parts: bool = False


class Timeline:
    """The phases of one run, from the moment that it is made.

    `clock` gives seconds and never goes back.  Only the thread that made the timeline is timed: while another one works
    for it, that one waits, and its time counts already.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._began = clock()
        self._thread = threading.get_ident()
        self._entries: list[_Entry] = []
        self._running: list[int] = []
        self._leaves: dict[_Key, int] = {}

    @contextlib.contextmanager
    def phase(self, name: str, graph: str | None = None) -> Iterator[None]:
        """Time inside the block is the phase's; what an inner phase takes is also that one's."""
        depth = self.begin(name, graph)
        try:
            yield
        finally:
            self.end(depth)

    def begin(self, name: str, graph: str | None = None) -> int:
        """A phase begins; returns what `end` needs to know to end it.  `graph` is by default that of the parent.

        A phase directly inside of itself (passes over a subgraph) is a part of it and does not begin anew.
        """
        if threading.get_ident() != self._thread:
            return NOT_BEGUN
        now = self._now()
        parent = self._running[-1] if self._running else None
        if graph is None and parent is not None:
            graph = self._entries[parent].graph
        if parent is not None:
            around = self._entries[parent]
            if (around.name, around.graph) == (name, graph):
                return NOT_BEGUN
            around.has_parts = True
        key = (name, parent, graph)
        index = self._leaves.get(key)
        if index is None or self._entries[index].has_parts or self._entries[index].since is not None:
            index = self._leaves[key] = len(self._entries)
            self._entries.append(_Entry(name, now, parent, graph))
        self._entries[index].since = now
        self._running.append(index)
        return len(self._running) - 1

    def end(self, depth: int) -> None:
        """The phase that `begin` returned `depth` for ends, and with it whatever still runs inside."""
        if depth < 0 or threading.get_ident() != self._thread:
            return
        now = self._now()
        for index in self._running[depth:]:
            entry = self._entries[index]
            if entry.since is not None:
                entry.seconds += now - entry.since
                entry.since = None
        del self._running[depth:]

    def elapsed_ms(self) -> float:
        """Milliseconds since the timeline was made."""
        return round(self._now() * 1e3, 3)

    def phases(self) -> tuple[PhaseTime, ...]:
        """All phases in the order in which they first began; those that still run, up to now."""
        now = self._now()
        return tuple(
            PhaseTime(
                name=entry.name,
                ms=round((entry.seconds + (now - entry.since if entry.since is not None else 0.0)) * 1e3, 3),
                start_ms=round(entry.start * 1e3, 3),
                parent=entry.parent,
                graph=entry.graph,
            )
            for entry in self._entries
        )

    def _now(self) -> float:
        return self._clock() - self._began
