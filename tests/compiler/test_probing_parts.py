"""The parts of the shape probe that need no compiler: work in a fork, and what to try."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from inductoscope.compiler.capture.facts import CaptureFacts
from inductoscope.compiler.inputs import CallInputs
from inductoscope.compiler.probing import arguments
from inductoscope.compiler.probing.apart import Lost, apart
from inductoscope.compiler.probing.cost import Extent, affordable
from inductoscope.compiler.probing.groups import Member, questions
from inductoscope.compiler.probing.trial import Named, Seen, tried
from inductoscope.compiler.usercode import UserCode
from inductoscope.protocol.report import Dimension, DimensionLimit, DimensionState, Graph, PhaseTime

SECONDS = 30.0


def test_the_result_comes_back_and_nothing_else() -> None:
    here = [1]
    assert apart(lambda: here.append(2) or here, SECONDS) == [1, 2]
    assert here == [1]


@pytest.mark.parametrize(
    ("work", "seconds", "why"),
    [
        (lambda: os.kill(os.getpid(), signal.SIGKILL), SECONDS, "ended with SIGKILL"),
        (lambda: os._exit(3), SECONDS, "ended with exit code 3"),
        (signal.pause, 0.1, "took more than 0 s"),
        (lambda: 1 / 0, SECONDS, "failed (ZeroDivisionError: division by zero)"),
    ],
)
def test_work_that_comes_to_nothing_says_why(work: Callable[[], object], seconds: float, why: str) -> None:
    assert apart(work, seconds) == Lost(why, is_late=why.startswith("took"))


def test_what_the_work_prints_is_not_seen(capfd: pytest.CaptureFixture[str]) -> None:
    assert apart(lambda: os.write(1, b"out") + os.write(2, b"error"), SECONDS) == len("outerror")
    assert capfd.readouterr() == ("", "")


def a_dimension(source: str, dim: int, size: int, symbol: str | None, **bounds: int) -> Dimension:
    state = DimensionState.DYNAMIC if symbol else DimensionState.PINNED
    return Dimension("0/0", source, dim, state, size, symbol, **bounds)


def leaves_of(**tensors: torch.Tensor) -> tuple[arguments.Leaf, ...]:
    return arguments.leaves(CallInputs((), tensors), None)


def test_sizes_of_one_symbol_change_together_as_they_depend_on_it() -> None:
    leaves = leaves_of(x=torch.ones(6, 3), y=torch.ones(12), z=torch.ones(5))
    told = (
        a_dimension("x", 0, 6, "s0"),
        a_dimension("x", 1, 3, None),
        a_dimension("y", 0, 12, "2*s0"),
        a_dimension("z", 0, 5, "s0 - 1"),
    )
    first, second = questions(leaves, told)
    assert first.ways[0] == (Member(0, 0, 3, 4), Member(1, 0, 6, 8), Member(2, 0, 2, 3))
    assert second.ways[0] == (Member(0, 1, 2, 6),)


@pytest.mark.parametrize(
    ("size", "bounds", "tried"),
    [
        (8, {}, (4, 2)),
        (2, {}, (4, 6)),
        (8, {"minimum": 5}, (6, 16)),
        (24, {"multiple_of": 8}, (48, 72)),
        (64, {"minimum": 2, "maximum": 64}, (32, 16)),
    ],
)
def test_sizes_keep_to_what_torch_knows(size: int, bounds: dict[str, int], tried: tuple[int, int]) -> None:
    (question,) = questions(leaves_of(x=torch.ones(size)), (a_dimension("x", 0, size, "s0", **bounds),))
    assert question.ways[0] == (Member(0, 0, *tried),)


def test_a_size_that_nothing_else_can_have_is_not_tried() -> None:
    leaves = leaves_of(x=torch.ones(4))
    assert questions(leaves, (a_dimension("x", 0, 4, "s0", minimum=4, maximum=4),)) == ()


def test_without_knowledge_leading_dimensions_of_one_size_change_together() -> None:
    first, second = questions(leaves_of(x=torch.ones(1, 6), mask=torch.ones(1, 6)), ())
    assert first.ways == (
        (Member(0, 0, 2, 3), Member(1, 0, 2, 3)),
        (Member(0, 0, 2, 3),),
    )
    assert [(one.leaf, one.dim) for one in second.ways[0]] == [(0, 1), (1, 1)]


def test_a_copy_of_another_size_is_like_the_tensor_it_is_made_from() -> None:
    given = torch.arange(2.0 * 3 * 4 * 4).reshape(2, 3, 4, 4).contiguous(memory_format=torch.channels_last)
    given.requires_grad_()
    call = CallInputs(({"x": given}, given), {"n": 3})
    other = arguments.with_sizes(call, {id(given): {0: 3, 2: 2}})
    made = other.args[1]
    assert other.args[0]["x"] is made
    assert other.kwargs == {"n": 3}
    assert (made.shape, made.requires_grad) == ((3, 3, 2, 4), True)
    assert made.is_contiguous(memory_format=torch.channels_last)
    assert torch.equal(made[2], given[0, :, :2])
    assert torch.equal(given.detach().flatten(), torch.arange(96.0).reshape(2, 3, 4, 4).flatten())


@pytest.mark.parametrize(
    ("conditions", "said"),
    [
        ((), "every size from 2 on"),
        (("x.size()[0] % 8 == 0",), "every size from 2 on with x.shape[0] % 8 == 0"),
        (("2 <= x.size()[0] <= 16",), "every size with 2 <= x.shape[0] <= 16"),
        (
            ("x.size()[0] % 4 == 0", "x.size()[0] // 4 != x.size()[0]", "x.size()[0] <= 99", "x.size()[0] != 4"),
            "every size from 2 on with x.shape[0] % 4 == 0 and x.shape[0] <= 99 and x.shape[0] != 4 "
            "and 1 more condition",
        ),
    ],
)
def test_what_sizes_are_held_to_is_said_in_few_words(conditions: tuple[str, ...], said: str) -> None:
    limits = tuple(DimensionLimit(text, "f.py", 3) for text in conditions)
    dimension = replace(a_dimension("x", 0, 4, "s0"), limits=limits)
    more = CaptureFacts(graphs=(Graph("0/1", "f", "f.py", 1, 2),), dimensions=(dimension,))
    calls = (Seen(more), Seen(CaptureFacts()))
    answer = tried(Named(("x",), (Member(0, 0, 4, 2),), 8), calls.__getitem__, UserCode())
    assert answer.message == f"another size compiles once more, which then serves {said}"


def test_the_leading_size_that_most_arguments_share_is_asked_about_first() -> None:
    asked = questions(leaves_of(scale=torch.ones(3), x=torch.ones(8, 4), y=torch.ones(8, 5)), ())
    assert [(one.leaf, one.dim) for one in asked[0].ways[0]] == [(1, 0), (2, 0)]


@pytest.mark.parametrize(
    ("ms", "extent"), [(900.0, Extent.EVERYTHING), (2400.0, Extent.LEADING), (2600.0, Extent.NOTHING)]
)
def test_what_can_be_tried_follows_from_what_capturing_took(ms: float, extent: Extent) -> None:
    phases = [PhaseTime("dynamo", ms - 200), PhaseTime("guards", 100), PhaseTime("eager execution", 100)]
    lowering = [PhaseTime("inductor", 50_000.0), PhaseTime("inductor backward", 50_000.0)]
    assert affordable([*phases, *lowering], 10.0) is extent
