"""The shape probe of a target: which dimensions of its inputs could have another size, and what that would do.

Comes after everything else that is told of a run, in processes of its own, so that nothing it does can be seen in the
report's other facts.  Graphs are captured and run op by op; nothing is lowered.
"""

from __future__ import annotations

import contextlib
import inspect
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from inductoscope.compiler.capture import Capture
from inductoscope.compiler.compat.settings import every_size_symbolic
from inductoscope.compiler.inputs import CallInputs
from inductoscope.compiler.probing import arguments, groups
from inductoscope.compiler.probing.apart import Lost, apart
from inductoscope.compiler.probing.arguments import Leaf
from inductoscope.compiler.probing.cost import Extent
from inductoscope.compiler.probing.groups import Member, Question
from inductoscope.compiler.probing.trial import Named, Seen, tried
from inductoscope.compiler.usercode import UserCode
from inductoscope.protocol.messages import Target
from inductoscope.protocol.report import Dimension, Probe, ProbeOutcome

MOST_QUESTIONS = 5
"""Dimensions (with those that change together) that are tried for one target."""

_GRACE = 2
"""Times the given seconds after which a trial is ended from outside."""

_MOST_CALLS = 3
"""Calls with the same inputs after which a program has to be compiled for good, if it ever is."""


@dataclass(frozen=True)
class Subject:
    """What is probed: the callable that was driven, its one call, and how to let nothing of it be lowered.

    `capturing` is entered around each call, besides the observer of Dynamo.
    """

    target: Target
    callable: Any
    call: CallInputs
    signature: inspect.Signature | None
    user_code: UserCode
    capturing: Callable[[], contextlib.AbstractContextManager[object]]


@dataclass(frozen=True)
class Probed:
    """The answers; a sentence where there can be none; and one about what there was no time for."""

    probes: tuple[Probe, ...] = ()
    note: str | None = None
    untried: str | None = None


def probe(subject: Subject, seconds: float, extent: Extent = Extent.EVERYTHING) -> Probed:
    """Try other sizes for at most `seconds` of wall time."""
    leaves = arguments.leaves(subject.call, subject.signature)
    if not any(leaf.sizes for leaf in leaves):
        return Probed()
    if extent is Extent.NOTHING:
        return Probed(untried=f"Other sizes were not tried: that would have taken more than {seconds:.0f} s.")
    found = apart(lambda: _probed(subject, leaves, time.monotonic() + seconds, extent), _GRACE * seconds)
    if not isinstance(found, Lost):
        return found
    why = f"Other sizes could not be tried: the trial {found.why}."
    return Probed(untried=why) if found.is_late else Probed(note=why)


def _probed(subject: Subject, leaves: tuple[Leaf, ...], deadline: float, extent: Extent) -> Probed:
    """In a fork: look which sizes are free, compile the program as it is, then ask each question in a fork of this one.

    What is imported and remembered for symbolic sizes is so for all of the questions.
    """
    torch.set_num_threads(1)  # the threads of a parallel loop do not live on in a fork
    trials = _Trials(subject, leaves, deadline)
    asked = groups.questions(leaves, trials.dimensions() if extent is Extent.EVERYTHING else ())
    if extent is Extent.LEADING:
        asked = asked[:1]
    if not trials.settles():
        return Probed(note="Other sizes were not tried: the program compiles again at each call as it is.")
    return trials.answers(asked)


class _OutOfTimeError(Exception):
    """The time is over before a question has its answer."""


class _Trials:
    """The calls of a probe."""

    def __init__(self, subject: Subject, leaves: tuple[Leaf, ...], deadline: float) -> None:
        self._subject = subject
        self._leaves = leaves
        self._deadline = deadline

    def settles(self) -> bool:
        """From nothing, call the program as it was called until a call compiles nothing; whether one does."""
        torch.compiler.reset()
        return any(not self._as_given().compiled for _ in range(_MOST_CALLS))

    def dimensions(self) -> tuple[Dimension, ...]:
        """What becomes of each dimension where every size is symbolic; nothing where the program cannot take that."""
        torch.compiler.reset()  # the number of threads is one of Dynamo's guards
        with every_size_symbolic():
            seen = self._as_given()
        return () if seen.error is not None else seen.facts.dimensions

    def answers(self, asked: tuple[Question, ...]) -> Probed:
        """One answer a question, until the time is over."""
        done: set[tuple[int, int]] = set()
        found: list[Probe] = []
        for question in asked[:MOST_QUESTIONS]:
            if question.at in done:
                continue
            try:
                way, answer = self._answer(question)
            except _OutOfTimeError:
                return Probed(tuple(found), untried="There was no time to try other sizes of every dimension.")
            done |= {(member.leaf, member.dim) for member in way}
            found.append(answer)
        return Probed(tuple(found), self._left_out([one.at for one in asked[MOST_QUESTIONS:] if one.at not in done]))

    def _left_out(self, dims: list[tuple[int, int]]) -> str | None:
        """What is said of dimensions that are one too many."""
        if not dims:
            return None
        names = [f"{self._leaves[leaf].name}.shape[{dim}]" for leaf, dim in dims[:MOST_QUESTIONS]]
        more = f" and {len(dims) - len(names)} more" if len(dims) > len(names) else ""
        return f"Other sizes were tried for {MOST_QUESTIONS} dimensions, and not for {', '.join(names)}{more}."

    def _answer(self, question: Question) -> tuple[tuple[Member, ...], Probe]:
        """The answer of the first way that does not hang on the sizes tried alone, else the one that tells most."""
        answers: list[tuple[tuple[Member, ...], Probe]] = []
        for way in question.ways:
            answers.append((way, self._tried(way)))
            if not _hangs_on_sizes(answers[-1][1]):
                return answers[-1]
        return min(answers, key=lambda one: one[1].outcome is ProbeOutcome.FAILS)

    def _tried(self, way: tuple[Member, ...]) -> Probe:
        named = Named(
            tuple(self._leaves[one.leaf].name for one in way), way, self._leaves[way[0].leaf].sizes[way[0].dim]
        )
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise _OutOfTimeError

        def call(at: int) -> Seen:
            return self._call(_sizes(self._leaves, way, at))

        answer = apart(lambda: tried(named, call, self._subject.user_code), left)
        if not isinstance(answer, Lost):
            return answer
        if self._deadline <= time.monotonic():
            raise _OutOfTimeError
        message = f"another size could not be tried: the trial {answer.why}"
        return Probe(
            named.sources[0],
            way[0].dim,
            named.size,
            way[0].second,
            ProbeOutcome.UNKNOWN,
            message,
            together=named.together,
        )

    def _as_given(self) -> Seen:
        return self._call({})

    def _call(self, sizes: dict[int, dict[int, int]]) -> Seen:
        """One call, with the error that it ends in."""
        subject = self._subject
        call = arguments.with_sizes(subject.call, sizes)
        capture = Capture(subject.user_code, subject.target, lambda _: None)
        try:
            with capture, subject.capturing():
                subject.callable(*call.args, **call.kwargs)
        except Exception as error:
            return Seen(capture.facts(), error, capture.compile_error(error))
        return Seen(capture.facts())


def _hangs_on_sizes(answer: Probe) -> bool:
    """Whether other sizes may do better: a program may raise for small ones, and one whose half is 1 compiles anew."""
    condition = bool(answer.guards) and answer.guards[0].kind == "shape"
    return answer.outcome is ProbeOutcome.FAILS or (answer.outcome is ProbeOutcome.RECOMPILES and condition)


def _sizes(leaves: tuple[Leaf, ...], way: tuple[Member, ...], at: int) -> dict[int, dict[int, int]]:
    """The sizes of a way as `arguments.with_sizes` wants them."""
    sizes: dict[int, dict[int, int]] = {}
    for one in way:
        sizes.setdefault(id(leaves[one.leaf].tensor), {})[one.dim] = (one.second, one.third)[at]
    return sizes
