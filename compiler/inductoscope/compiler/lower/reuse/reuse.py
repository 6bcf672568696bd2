"""Whether a captured graph was lowered before, and what to keep of one that was not.

Asks for the key before Inductor gets the graph, watches what lowering leaves behind besides facts, and keeps only what
is a function of the key.  It knows nothing of files.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import torch

from inductoscope.compiler.compat import identity, size_guards
from inductoscope.compiler.compat.identity import UncertainError
from inductoscope.compiler.compat.size_guards import NotRepeatableError
from inductoscope.compiler.lower.lowered import LoweredGraph
from inductoscope.compiler.lower.reuse import key
from inductoscope.compiler.lower.reuse.entry import Around, Entry, KeptNote, Watched, entry_of
from inductoscope.compiler.lower.reuse.key import Named
from inductoscope.compiler.lower.reuse.lines import KindOf
from inductoscope.compiler.lower.reuse.machine import machine_text
from inductoscope.compiler.lower.reuse.shelf import Shelf
from inductoscope.protocol.report import Decision, GraphLowering, LoweringOutcome

_LOG = logging.getLogger(__name__)

_T = TypeVar("_T")

_REPEATABLE = "pad_mm"
"""The topic of the notes that lowering makes of a graph alone (`simgpu.records.Topic.PADDING`)."""


class Heard(Protocol):
    """What a simulated device says: notes that have a topic, a text, a place and a subject, and decisions."""

    @property
    def notes(self) -> Sequence[Any]:
        """Each time that something was noted."""

    @property
    def decisions(self) -> Sequence[Decision]:
        """Each time that something was decided in the card's place."""


class Journal(Protocol):
    """What a simulated device notes while a graph is lowered."""

    def hearing(self) -> contextlib.AbstractContextManager[Heard]:
        """Every note and decision of the block."""

    def syncs(self) -> tuple[Any, ...]:
        """Every look at a device value so far."""

    def launches(self) -> tuple[Any, ...]:
        """Every launch of a hand-written kernel so far."""


@dataclass(frozen=True)
class Lookup:
    """What is known of a captured graph before Inductor gets it: its name, or `why` it has none, and its facts."""

    named: Named | None = None
    why: str | None = None
    entry: Entry | None = None


@dataclass
class Reuse:
    """Looks graphs up and keeps them; `circumstances` are texts about the run that its facts depend on."""

    shelf: Shelf
    circumstances: Sequence[str]
    kind_of: KindOf
    journal: Journal | None
    _outcomes: dict[str, GraphLowering] = field(default_factory=dict)

    def outcomes(self) -> tuple[GraphLowering, ...]:
        """What became of each graph, in the order of their compilation."""
        return tuple(self._outcomes.values())

    def look_up(
        self,
        model: torch.fx.GraphModule,
        inputs: Sequence[Any],
        options: Mapping[str, Any],
        region: str | None,
        allowance: int,
    ) -> Lookup:
        """The graph's name, and its facts where an earlier run has lowered it and told as much as `allowance` nodes."""
        if self.shelf.folder is None:
            return Lookup()
        try:
            named = key.named(model, inputs, [*self.circumstances, *_now(options, region)], self.kind_of)
        except UncertainError as uncertain:
            return Lookup(why=str(uncertain))
        except Exception:  # an unknown version of torch may surprise in any way
            _LOG.warning("a graph cannot be named", exc_info=True)
            return Lookup(why="something that Inductoscope does not know")
        found = self.shelf.take(named)
        if found is None or not found.fits(allowance):
            return Lookup(named)
        return Lookup(named, None, found) if _guarded(found) else Lookup(why="guards on sizes that came out otherwise")

    @contextlib.contextmanager
    def watching(self) -> Iterator[Watched]:
        """Note what lowering does besides making facts, for the duration of the block."""
        found, journal = Watched(), self.journal
        if self.shelf.folder is None:
            yield found
            return
        with journal.hearing() if journal is not None else contextlib.nullcontext() as heard:
            before = _noted(found, lambda: _Before.now(journal))
            yield found
        if heard is not None:
            found.notes += [KeptNote(one.topic.value, one.text, one.place, one.subject) for one in heard.notes]
            found.decisions += heard.decisions
        if before is not None:
            _noted(found, lambda: _compare(found, before, journal))

    def unchanged(self, graph_id: str) -> None:
        """An earlier run has lowered the graph."""
        self._note(GraphLowering(graph_id, LoweringOutcome.UNCHANGED))

    def lowered(self, lookup: Lookup, graph: LoweredGraph, why: str | None, around: Around) -> None:
        """The graph was lowered; keep it unless there is a reason why not."""
        if self.shelf.folder is None:
            return
        why = lookup.why or why
        self._note(GraphLowering(graph.id, LoweringOutcome.LOWERED, why))
        if why is None and lookup.named is not None:
            self.shelf.put(lookup.named, lambda: entry_of(graph, around))

    def _note(self, outcome: GraphLowering) -> None:
        self._outcomes.pop(outcome.graph, None)
        self._outcomes[outcome.graph] = outcome


@dataclass(frozen=True)
class _Before:
    """How things stand before a graph is lowered."""

    traces: tuple[str, ...]
    aot_number: int | None
    sizes: size_guards.Before
    seen: tuple[Any, ...]

    @classmethod
    def now(cls, journal: Journal | None) -> _Before:
        return cls(identity.traces(), identity.aot_number(), size_guards.before(), _seen(journal))


def _seen(journal: Journal | None) -> tuple[Any, ...]:
    return (journal.syncs(), journal.launches()) if journal is not None else ()


def _compare(found: Watched, before: _Before, journal: Journal | None) -> None:
    """Note what lowering a graph has left behind."""
    if any(note.topic != _REPEATABLE for note in found.notes):
        found.troubles.append("what the simulated device noted of it")
    if _seen(journal) != before.seen:
        found.troubles.append("the device was waited for while it was lowered")
    if identity.traces() != before.traces:
        found.troubles.append("lowering it does something that other graphs depend on")
    if before.aot_number is None or identity.aot_number() != before.aot_number + 1:
        found.troubles.append("it is lowered in several parts")
    found.sizes = size_guards.added(before.sizes)


def _noted(found: Watched, look: Callable[[], _T]) -> _T | None:
    """What `look` returns; where it fails, that is a trouble of the graph and not of the program."""
    try:
        return look()
    except NotRepeatableError as error:
        found.troubles.append(str(error))
    except Exception:  # an unknown version of torch may surprise in any way
        _LOG.warning("cannot see what lowering does besides making facts", exc_info=True)
        found.troubles.append("something that Inductoscope does not know")
    return None


def _guarded(found: Entry) -> bool:
    """Add the guards that lowering the graph would add; false where that does not come out as it did then."""
    try:
        if size_guards.add(found.sizes):
            return True
    except Exception:  # torch itself raises where a guard does not hold
        _LOG.warning("guards of an earlier run cannot be added", exc_info=True)
        return False
    _LOG.warning("the guards of an earlier run do not lead to what it knew of sizes")
    return False


def _now(options: Mapping[str, Any], region: str | None) -> Iterator[str]:
    """What may differ from graph to graph of one run."""
    foreign = identity.foreign_lowering()
    if foreign is not None:
        raise UncertainError(f"the program's own lowering of {foreign}")
    yield machine_text()
    yield identity.settings_text(options)
    yield identity.state_text()
    yield identity.sizes_text(identity.shape_env())
    yield f"region {region}"
