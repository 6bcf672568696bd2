"""What is kept of a lowered graph: its facts, without anything that another run has otherwise.

The graph's id, the numbers of its fusion groups and of its wrappers, and the folder of torch's caches are left out and
put in again; lines are numbered by `lines`.  It knows nothing of files or keys.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import torch

from inductoscope.compiler import scratch
from inductoscope.compiler.compat import caches, identity, size_guards
from inductoscope.compiler.compat.caches import Asked, Cache
from inductoscope.compiler.compat.size_guards import Added
from inductoscope.compiler.lower.cache_log import Question
from inductoscope.compiler.lower.cudagraphs import Piece, Skip
from inductoscope.compiler.lower.groups import group_id
from inductoscope.compiler.lower.library import Fallback
from inductoscope.compiler.lower.lowered import LoweredGraph
from inductoscope.compiler.lower.reuse.lines import Lines
from inductoscope.compiler.lower.signatures import Expectation
from inductoscope.compiler.predict.eager import EagerRun
from inductoscope.protocol import codec
from inductoscope.protocol.report import (
    Decision,
    FusionGroup,
    FxGraph,
    Kernel,
    Memory,
    PassFact,
    Place,
    Recomputation,
    SavedTensor,
    Wrapper,
)

_NUMBER = re.compile(r"(?<=# AOT ID: \[')\d+(?=_)")
_FOLDER = "\0torch's caches\0"

_Fact = TypeVar("_Fact", FxGraph, Kernel, PassFact, Recomputation, SavedTensor, Wrapper)


class NotKeepableError(Exception):
    """The facts hold something that is another in every run; the message says what."""


@dataclass(frozen=True)
class KeptExpectation:
    """An `Expectation`; a dtype stands as `torch.float32`."""

    index: int
    kernel: str
    declared: str
    place: Place | None


@dataclass(frozen=True)
class KeptQuestion:
    """A `Question` to one of torch's caches."""

    cache: Cache
    is_backward: bool
    key: str | None
    parts: dict[str, str]
    refusal: str | None
    sizes: tuple[int, ...]
    conditions: str | None
    place: Place | None


@dataclass(frozen=True)
class KeptNote:
    """Something that the simulated device had to say while the graph was lowered."""

    topic: str
    text: str
    place: Place | None
    subject: str | None


@dataclass(frozen=True)
class Entry:
    """The facts of one graph.

    `nodes` is how many nodes its graphs were told with, of `allowance` that were left.
    """

    groups: tuple[FusionGroup, ...]
    kernels: tuple[Kernel, ...]
    wrappers: tuple[Wrapper, ...]
    fallbacks: tuple[Fallback, ...]
    memory: Memory
    passes: tuple[PassFact, ...]
    fx_graphs: tuple[FxGraph, ...]
    saved: tuple[SavedTensor, ...]
    recomputed: tuple[Recomputation, ...]
    left_out: tuple[int, ...]
    expected: tuple[KeptExpectation, ...]
    on_cuda: bool
    skips: tuple[Skip, ...]
    pieces: tuple[Piece, ...]
    recordings: int
    questions: tuple[KeptQuestion, ...]
    libraries: tuple[str, ...]
    notes: tuple[KeptNote, ...]
    decisions: tuple[Decision, ...]
    eager: EagerRun | None
    sizes: Added
    nodes: int
    allowance: int

    def fits(self, allowance: int) -> bool:
        """Whether a run that may tell `allowance` more nodes would tell just these."""
        everything = not any(graph.left_out for graph in self.fx_graphs)
        return allowance == self.allowance or (everything and allowance >= self.nodes)


@dataclass
class Watched:
    """What lowering did besides making facts; `troubles` are phrases about what cannot be done again without it."""

    notes: list[KeptNote] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)
    sizes: Added = size_guards.NOTHING
    troubles: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Around:
    """What was noted beside the facts of a graph while it was lowered.

    `passes` are those before Inductor; `allowance` and `left` are how many nodes might be told before and after it.
    """

    passes: Sequence[PassFact]
    questions: Sequence[Question]
    libraries: Sequence[str]
    watched: Watched
    allowance: int
    left: int


def entry_of(graph: LoweredGraph, around: Around) -> Entry:
    """What to keep of a graph that was lowered, and perhaps run."""
    return Entry(
        groups=_renumbered(graph.groups, graph.id, graph.first, "", 0),
        kernels=_of_graph(graph.kernels, ""),
        wrappers=tuple(_nameless(one) for one in graph.wrappers),
        fallbacks=tuple(graph.fallbacks),
        memory=graph.memory,
        passes=_of_graph(graph.passes.facts()[len(around.passes) :], ""),
        fx_graphs=_of_graph(graph.stages.graphs, ""),
        saved=_of_graph(graph.stages.saved, ""),
        recomputed=_of_graph(graph.stages.recomputed, ""),
        left_out=tuple(graph.backward.left_out),
        expected=tuple(
            KeptExpectation(one.index, one.kernel, str(one.declared), one.place) for one in graph.signatures.expected
        ),
        on_cuda=graph.verdict.on_cuda,
        skips=tuple(graph.verdict.skips),
        pieces=tuple(graph.verdict.pieces),
        recordings=graph.verdict.recordings,
        questions=tuple(map(_kept, around.questions)),
        libraries=tuple(around.libraries),
        notes=tuple(around.watched.notes),
        decisions=tuple(around.watched.decisions),
        eager=graph.eager if graph.eager is not None and graph.eager.missing is None else None,
        sizes=around.watched.sizes,
        nodes=around.allowance - around.left,
        allowance=around.allowance,
    )


def told_again(entry: Entry, graph: LoweredGraph, aot_number: int) -> None:
    """Put the facts of an earlier run into `graph`, which nothing was found out about yet."""
    graph.groups += _renumbered(entry.groups, "", 0, graph.id, graph.first)
    graph.kernels += _of_graph(entry.kernels, graph.id)
    graph.wrappers += [_named(one, graph.id, aot_number) for one in entry.wrappers]
    graph.fallbacks += entry.fallbacks
    graph.memory = entry.memory
    graph.eager = entry.eager
    graph.passes.known(_of_graph(entry.passes, graph.id))
    graph.stages.graphs += _of_graph(entry.fx_graphs, graph.id)
    graph.stages.saved += _of_graph(entry.saved, graph.id)
    graph.stages.recomputed += _of_graph(entry.recomputed, graph.id)
    graph.stages.allowance.nodes -= entry.nodes
    graph.backward.left_out += entry.left_out
    graph.signatures.expected += map(_expectation, entry.expected)
    graph.verdict.on_cuda = entry.on_cuda
    graph.verdict.skips += entry.skips
    graph.verdict.pieces += entry.pieces
    graph.verdict.recordings = entry.recordings


def questions_of(entry: Entry) -> list[Question]:
    """What torch's caches were asked while the graph was lowered."""
    return [
        Question(
            caches.again(Asked(one.cache, one.is_backward, one.key, one.parts, one.refusal, one.sizes), one.conditions),
            one.place,
            one.conditions,
        )
        for one in entry.questions
    ]


def to_json(entry: Entry, lines: Lines) -> Any:
    """The entry with its lines by number.  Raises `NoSuchLineError`, and `NotKeepableError` where a text names a file
    of the program or an object."""
    value = lines.numbered(codec.to_json(entry))
    for text in _texts(value):
        own = next((file for file, _ in lines.known if file in text), None)
        if own is not None or scratch_folder() in text or identity.has_address(text):
            raise NotKeepableError(f"a text that names {own or 'what only this run has'}: {text[:200]}")
    return value


def from_json(value: Any, lines: Lines) -> Entry:
    """The entry with the lines of the present graph.  Raises `NoSuchLineError`, `codec.CodecError`."""
    return codec.from_json(Entry, lines.placed(value))


def scratch_folder() -> str:
    """Where torch's caches are in this process; wrappers name files there."""
    return os.environ.get(scratch.INDUCTOR) or "\0"


def _texts(value: Any) -> list[str]:
    """All texts in a JSON value."""
    found: list[str] = []
    left = [value]
    while left:
        one = left.pop()
        if isinstance(one, str):
            found.append(one)
        elif isinstance(one, dict):
            left += one.values()
        elif isinstance(one, list):
            left += one
    return found


def _of_graph(facts: Sequence[_Fact], graph_id: str) -> tuple[_Fact, ...]:
    return tuple(replace(fact, graph=graph_id) for fact in facts)


def _renumbered(
    groups: Sequence[FusionGroup], old: str, old_first: int, new: str, new_first: int
) -> tuple[FusionGroup, ...]:
    """The groups with ids of another graph, or of another place among those of the same."""
    ids = {group_id(old, old_first + at): group_id(new, new_first + at) for at in range(len(groups))}
    return tuple(
        replace(
            group,
            id=ids[group.id],
            apart_from=tuple(replace(other, group=ids[other.group]) for other in group.apart_from),
        )
        for group in groups
    )


def _nameless(wrapper: Wrapper) -> Wrapper:
    source = _NUMBER.sub("", wrapper.source).replace(scratch_folder(), _FOLDER)
    return replace(wrapper, graph="", source=source)


_NUMBERLESS = re.compile(r"(?<=# AOT ID: \[')(?=_)")


def _named(wrapper: Wrapper, graph_id: str, aot_number: int) -> Wrapper:
    source = _NUMBERLESS.sub(str(aot_number), wrapper.source).replace(_FOLDER, scratch_folder())
    return replace(wrapper, graph=graph_id, source=source)


def _kept(question: Question) -> KeptQuestion:
    one = question.asked
    return KeptQuestion(
        one.cache,
        one.is_backward,
        one.key,
        dict(one.parts),
        caches.refusal_text(one.refusal) if one.refusal is not None else None,
        one.sizes,
        question.conditions,
        question.place,
    )


def _expectation(kept: KeptExpectation) -> Expectation:
    is_dtype = kept.declared.startswith("torch.")
    declared = getattr(torch, kept.declared.removeprefix("torch.")) if is_dtype else kept.declared
    return Expectation(kept.index, kept.kernel, declared, kept.place)
