"""The shape probe, against torch itself: each answer is compared with what a plain second and third call compile."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch._dynamo.testing import CompileCounter

from compiler import probed_programs
from compiler.probed_programs import PROGRAMS, Programmed
from inductoscope.compiler.inputs import CallInputs
from inductoscope.compiler.probing import Probed, Subject, probe
from inductoscope.compiler.usercode import UserCode
from inductoscope.protocol.messages import Target, TargetKind
from inductoscope.protocol.report import Probe, ProbeOutcome

pytestmark = pytest.mark.slow

FILE = probed_programs.__file__
SECONDS = 120.0


@pytest.fixture(autouse=True)
def _nothing_compiled() -> Iterator[None]:
    torch.compiler.reset()
    yield
    torch.compiler.reset()


def line_of(mark: str | None) -> int | None:
    if not mark:
        return None if mark is None else 1
    lines = Path(FILE).read_text().splitlines()
    return next(number for number, text in enumerate(lines, 1) if f"# <{mark}>" in text)


def subject_of(one: Programmed) -> Subject:
    return Subject(
        Target(FILE, "program", 1, TargetKind.FUNCTION, "program"),
        torch.compile(one.program, backend="eager", **one.compile),
        CallInputs(one.make(), {}),
        inspect.signature(one.program.forward if isinstance(one.program, torch.nn.Module) else one.program),
        UserCode(also=(FILE,)),
        contextlib.nullcontext,
    )


def probed(one: Programmed) -> Probed:
    return probe(subject_of(one), SECONDS)


def key(answer: Probe) -> str:
    return f"{answer.source} {answer.dim}"


@pytest.mark.parametrize("name", PROGRAMS)
def test_answers_are_what_torch_does(name: str) -> None:
    one = PROGRAMS[name]
    found = {key(answer): answer for answer in probed(one).probes}
    told = {at: (answer.outcome, answer.line) for at, answer in found.items() if at in one.answers}
    assert told == {at: (outcome, line_of(mark)) for at, (_, outcome, mark) in one.answers.items()}
    assert {at: found[at].together for at in one.together} == one.together
    for at, (keyword, outcome, _) in one.answers.items():
        assert_true(one, found[at], keyword, outcome)


def assert_true(one: Programmed, answer: Probe, keyword: str, outcome: ProbeOutcome) -> None:
    """Call plain torch.compile at the size that was tried and at one that was not, and count."""
    torch.compiler.reset()
    counter = CompileCounter()
    compiled = torch.compile(one.program, backend=counter, **one.compile)
    compiled(*one.make())
    compiled(*one.make())
    before = counter.frame_count
    if outcome is ProbeOutcome.FAILS:
        with pytest.raises(Exception):  # noqa: B017  (each program raises its own)
            compiled(*one.make(**{keyword: answer.tried}))
        return
    compiled(*one.make(**{keyword: answer.tried}))
    second = counter.frame_count
    compiled(*one.make(**{keyword: one.third}))
    third = counter.frame_count
    assert (second > before) is (outcome is not ProbeOutcome.REUSED)
    assert (third > second) is (outcome in (ProbeOutcome.RECOMPILES, ProbeOutcome.PINNED))


def test_nothing_that_is_tried_can_be_seen_afterwards() -> None:
    calls: list[Any] = []

    @torch.compiler.disable
    def note(sizes: torch.Size) -> None:
        calls.append(sizes)

    def program(x: torch.Tensor) -> torch.Tensor:
        note(x.shape)
        return x * 2

    subject = Subject(
        Target(__file__, "program", 1, TargetKind.FUNCTION, "program"),
        torch.compile(program, backend="eager"),
        CallInputs((torch.randn(4, 3),), {}),
        inspect.signature(program),
        UserCode(),
        contextlib.nullcontext,
    )
    threads, state = torch.get_num_threads(), torch.get_rng_state()
    assert [answer.outcome for answer in probe(subject, SECONDS).probes] == [ProbeOutcome.DYNAMIC] * 2
    assert calls == []
    assert torch.get_num_threads() == threads
    assert torch.equal(torch.get_rng_state(), state)


def test_a_program_that_never_settles_is_not_probed() -> None:
    class Counts(torch.nn.Module):
        calls = 0

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.calls += 1
            return x * self.calls

    found = probed(Programmed(Counts(), lambda: (torch.randn(4, 3),), {}))
    assert found.probes == ()
    assert "compiles again at each call" in str(found.note)


def test_a_crash_in_a_trial_is_an_answer_of_its_own() -> None:
    import os
    import signal

    @torch.compiler.disable
    def fragile(rows: int) -> None:
        if rows != 4:
            os.kill(os.getpid(), signal.SIGSEGV)

    def program(x: torch.Tensor) -> torch.Tensor:
        fragile(x.shape[0])
        return x * 2

    first = probed(Programmed(program, lambda: (torch.randn(4, 3),), {})).probes[0]
    assert (first.outcome, "SIGSEGV" in first.message) == (ProbeOutcome.UNKNOWN, True)


def test_dimensions_that_are_one_too_many_are_named() -> None:
    one = Programmed(adds_sums, lambda: tuple(torch.ones(2 + at, 12) for at in range(7)), {})
    found = probed(one)
    tried = {f"{answer.source}.shape[{answer.dim}]" for answer in found.probes}
    tried |= {other for answer in found.probes for other in answer.together}
    rows = [f"args[{at}].shape[0]" for at in range(7)]
    left = [name for name in rows if name not in tried]
    assert (len(found.probes), len(left)) == (5, 2)
    assert found.note is not None
    assert found.note.startswith(f"Other sizes were tried for 5 dimensions, and not for {', '.join(left)}")


def adds_sums(*args: torch.Tensor) -> torch.Tensor:
    return sum(one.sum(0) for one in args)  # type: ignore[return-value]
