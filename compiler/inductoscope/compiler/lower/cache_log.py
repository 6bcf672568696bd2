"""What torch's caches would do with each graph of the run, if the program were started now with its own cache folder.

Nothing is taken from a cache here: an entry brings back the lines of an older text.  The key is made as torch makes it,
and the user's folder is only looked into.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from inductoscope.compiler.compat import caches as compat
from inductoscope.compiler.compat.caches import Asked, Identity, UserSettings
from inductoscope.compiler.lower import cache_keys
from inductoscope.compiler.lower.cache_keys import Known
from inductoscope.compiler.lower.places import Places
from inductoscope.compiler.timeline import OURS, Timeline
from inductoscope.protocol.report import CacheFact, Phase, Place

_LOG = logging.getLogger(__name__)

ELSEWHERE = "the entries lie where the GPU is"
HIT, MISS, BYPASS, OFF, UNKNOWN = "hit", "miss", "bypass", "off", "unknown"
_FOLDERS = ("fxgraph", "aotautograd")


@dataclass(frozen=True)
class UsersCaches:
    """The cache folder that the user's program has, None where that is on another machine; the keys of the run before;
    why keys that are made here cannot be looked up, if so; and the folder that the user names for Triton's cache."""

    folder: Path | None
    before: tuple[Known, ...] = ()
    unknown: str | None = None
    triton: Path | None = None

    @property
    def has_entries(self) -> bool:
        """Whether anything was ever saved there that can be found again."""
        if self.folder is None or self.unknown is not None:
            return False
        return any((self.folder / name).is_dir() for name in _FOLDERS)

    @property
    def identity(self) -> Identity:
        """Keys as torch makes them cost a second; without entries to look for, keys of our own do."""
        return Identity.REAL if self.has_entries else Identity.STAND_IN


@dataclass(frozen=True)
class Question:
    """What a cache is asked for, the line of an operator that it refuses, and the conditions on the graph's sizes,
    which are known once it is compiled."""

    asked: Asked
    place: Place | None = None
    conditions: str | None = None


@dataclass
class _Entry:
    """What the program would have saved: a key and the conditions under which the entry holds."""

    known: Known
    attempt: int
    conditions: str | None = None

    def serves(self, key: str, one: Asked) -> bool:
        return self.known.key == key and (self.conditions is None or one.meets(self.conditions))


@dataclass
class CacheLog:
    """Collects what the caches would say, graph by graph."""

    users: UsersCaches
    places: Places
    timeline: Timeline
    _entries: list[_Entry] = field(default_factory=list)
    _facts: list[tuple[int, CacheFact]] = field(default_factory=list)

    @contextlib.contextmanager
    def watching(self, graph: str, attempt: int, settings: UserSettings) -> Iterator[list[Question]]:
        """Take note of each graph that a cache would be asked for while the captured graph `graph` is compiled.

        What was asked stands in the given list when the block is over.
        """
        self._begin_anew(graph, attempt)
        made: list[tuple[_Entry | None, Asked]] = []
        questions: list[Question] = []

        def note(one: Asked) -> None:
            place = self.places.of(one.culprit) if one.culprit is not None else None
            made.append((self._take_in(Question(one, place), graph, attempt, settings), one))
            questions.append(Question(one, place))

        with compat.asked(settings, self.users.identity, note, lambda: self.reading(graph)):
            yield questions
        with self.reading(graph):
            for at, (entry, one) in enumerate(made):
                conditions = one.conditions()
                questions[at] = replace(questions[at], conditions=conditions)
                if entry is not None:
                    entry.conditions = conditions

    def asked_again(self, graph: str, attempt: int, settings: UserSettings, before: Sequence[Question]) -> None:
        """Take in what was asked when the same graph was compiled in an earlier run."""
        self._begin_anew(graph, attempt)
        with self.reading(graph):
            taken = [(self._take_in(one, graph, attempt, settings), one.conditions) for one in before]
            for entry, conditions in taken:
                if entry is not None:
                    entry.conditions = conditions

    def _begin_anew(self, graph: str, attempt: int) -> None:
        """Forget an earlier attempt at the same graph."""
        self._facts = [(nth, fact) for nth, fact in self._facts if fact.graph != graph or nth == attempt]
        self._entries = [one for one in self._entries if one.known.graph != graph or one.attempt == attempt]

    def _take_in(self, question: Question, graph: str, attempt: int, settings: UserSettings) -> _Entry | None:
        fact, entry = self._judged(question, graph, attempt, settings)
        self._facts.append((attempt, fact))
        if entry is not None:
            self._entries.append(entry)
        return entry

    def facts(self) -> tuple[CacheFact, ...]:
        """One for each graph and cache, in the order in which torch would ask; then those of the whole program."""
        return tuple(fact for _, fact in self._facts)

    def keys(self) -> tuple[Known, ...]:
        """The keys of this run, for the next one to be compared with."""
        return tuple(entry.known for entry in self._entries)

    @contextlib.contextmanager
    def reading(self, graph: str) -> Iterator[None]:
        """Around what only looks: it takes time of its own and must not change the run."""
        try:
            with self.timeline.phase(OURS):
                yield
        except Exception:  # an unknown version of torch may surprise in any way
            _LOG.warning("cannot tell what the caches do with graph %s", graph, exc_info=True)

    def _judged(
        self, question: Question, graph: str, attempt: int, settings: UserSettings
    ) -> tuple[CacheFact, _Entry | None]:
        one, place = question.asked, question.place
        phase = Phase.BACKWARD if one.is_backward else Phase.FORWARD
        at = (place.file, place.line) if place is not None else (None, None)

        def fact(result: str, *because: str, key: str | None = None) -> CacheFact:
            return CacheFact(one.cache.value, result, because, graph, key, phase, *at)

        if not settings.are_on(one.cache):
            return fact(OFF, "it is turned off"), None
        if one.key is None:
            return fact(BYPASS, compat.refusal_text(one.refusal or "")), None
        real = one.key if self.users.identity is Identity.REAL else None
        known = Known(one.cache.value, one.is_backward, graph, one.key, one.parts)
        entry = _Entry(known, attempt)
        result, because = self._looked_up(one, known)
        return fact(result, *because, key=real), entry

    def _looked_up(self, one: Asked, known: Known) -> tuple[str, list[str]]:
        """What the cache would answer, and why."""
        folder = self.users.folder
        if folder is not None and self.users.has_entries and compat.has_entry(one, folder):
            return HIT, [f"an entry lies in {folder}"]
        for entry in self._entries:
            if entry.serves(known.key, one):
                return HIT, [f"graph {entry.known.graph} of this run makes the same key and is saved before"]
        compared = self._compared(known)
        if folder is None or self.users.unknown is not None:
            return UNKNOWN, [self.users.unknown or ELSEWHERE, *compared]
        if not self.users.has_entries:
            return MISS, [f"nothing was ever saved in {folder}", *compared]
        return MISS, [f"no entry in {folder}", *compared]

    def _compared(self, known: Known) -> list[str]:
        """How the key differs from the nearest ones that were made earlier, in this run and in the one before."""
        told = []
        nearest = cache_keys.nearest(known, [entry.known for entry in self._entries])
        if nearest is not None:
            told.append(cache_keys.sentence(known, nearest, f"graph {nearest.graph} of this run"))
        last = cache_keys.nearest(known, self.users.before)
        if last is not None and last.parts == known.parts:
            told.append("made of the same as in the run before")
        elif last is not None:
            told.append(cache_keys.sentence(known, last, "the run before"))
        return told
