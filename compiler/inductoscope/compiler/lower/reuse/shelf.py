"""Lowered graphs on disk, for runs to come.  Reading and writing may fail in any way, and then nothing is kept.

It knows neither how a graph gets its key nor what a run does with its facts.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from inductoscope.compiler.lower.reuse import entry
from inductoscope.compiler.lower.reuse.entry import Entry, NotKeepableError
from inductoscope.compiler.lower.reuse.key import Named
from inductoscope.compiler.lower.reuse.lines import NoSuchLineError
from inductoscope.protocol import codec
from inductoscope.protocol.kernel_store import KernelStore

_LOG = logging.getLogger(__name__)


@dataclass
class Shelf:
    """Entries in `folder`, None where nothing is kept; `budget` is how many bytes they may take together.

    What is put is written by `write`, so that nobody waits for the disk while a program is compiled.
    """

    folder: Path | None
    budget: int = 0
    _put: list[tuple[Named, Callable[[], Entry]]] = field(default_factory=list)

    def take(self, named: Named) -> Entry | None:
        """The entry of a graph, with the graph's own lines; None where there is none that can be read."""
        if self.folder is None:
            return None
        stored = KernelStore(self.folder).facts(named.key)
        if stored is None:
            return None
        try:
            return entry.from_json(stored, named.lines)
        except (NoSuchLineError, codec.CodecError) as error:
            _LOG.info("an entry cannot be read: %s", error)
            return None

    def put(self, named: Named, facts: Callable[[], Entry]) -> None:
        """Keep the facts of a graph, which are asked for when they are written."""
        if self.folder is not None:
            self._put.append((named, facts))

    def write(self) -> None:
        """Write what was put, and remove what was used longest ago where that is too much."""
        written, self._put = self._put, []
        if self.folder is None or not written:
            return
        store = KernelStore(self.folder)
        for named, facts in written:
            try:
                store.put(named.key, entry.to_json(facts(), named.lines), {})
            except (NoSuchLineError, NotKeepableError, OSError) as error:
                _LOG.info("a lowered graph is not kept: %s", error)
            except Exception:  # facts of an unknown version of torch may surprise in any way
                _LOG.warning("a lowered graph cannot be kept", exc_info=True)
        store.trim(self.budget)
