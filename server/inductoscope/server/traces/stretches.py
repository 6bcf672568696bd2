"""Many payloads of one file, kept in sixteen bytes each: a long run has hundreds of thousands of timeline events."""

from __future__ import annotations

from array import array
from collections.abc import Iterator

from inductoscope.server.traces.lines import Spans


class Stretches:
    """Places of payloads, in order."""

    def __init__(self) -> None:
        self._bounds = array("Q")
        self._others: dict[int, Spans] = {}  # those in several pieces, or with something before each line

    def __len__(self) -> int:
        return len(self._bounds) // 2

    def __iter__(self) -> Iterator[Spans]:
        for at in range(len(self)):
            other = self._others.get(at)
            yield other or Spans(b"", [(self._bounds[2 * at], self._bounds[2 * at + 1])])

    def add(self, spans: Spans) -> None:
        """One more, which does not change any more."""
        if len(spans.pieces) == 1 and not spans.prefix:
            self._bounds.extend(spans.pieces[0])
        else:
            self._others[len(self)] = spans
            self._bounds.extend((0, 0))
