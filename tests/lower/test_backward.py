"""Backward passes are lowered along with their forward passes, except very large ones that nobody has asked for."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from inductoscope.compiler.lower import Backward, Depth, LowerFacts, Lowering, backward  # noqa: E402
from inductoscope.compiler.usercode import UserCode  # noqa: E402
from inductoscope.protocol.report import Phase  # noqa: E402

pytestmark = pytest.mark.slow


def double_sine(x):
    return x.sin().sin()


def lowered(policy: Backward, dynamic: bool | None = None) -> LowerFacts:
    torch._dynamo.reset()
    with Lowering(UserCode(), "cpu", Depth.KERNELS, policy) as lowering:
        result = torch.compile(double_sine, dynamic=dynamic)(torch.randn(8, requires_grad=True))
        result.sum().backward()
    return lowering.facts()


def phases(facts: LowerFacts) -> set[Phase]:
    return {kernel.phase for kernel in facts.kernels}


@pytest.fixture
def two_operators_are_many(monkeypatch):
    monkeypatch.setattr(backward, "MOST_OPERATORS", 2)


def test_a_small_backward_pass_is_lowered_under_either_policy():
    for policy in Backward:
        facts = lowered(policy)
        assert phases(facts) == {Phase.FORWARD, Phase.BACKWARD}
        assert facts.findings == ()


@pytest.mark.usefixtures("two_operators_are_many")
def test_a_large_one_is_left_out_with_a_finding_and_the_program_still_trains():
    facts = lowered(Backward.UNLESS_LARGE)
    assert phases(facts) == {Phase.FORWARD}
    assert facts.problems == ()
    [finding] = facts.findings
    assert (finding.code, finding.line) == ("backward-left-out", double_sine.__code__.co_firstlineno)
    assert "graph 0/0" in finding.message and "exercise" in finding.message


@pytest.mark.usefixtures("two_operators_are_many")
def test_a_large_one_is_lowered_for_a_program_that_trains():
    facts = lowered(Backward.ALWAYS)
    assert phases(facts) == {Phase.FORWARD, Phase.BACKWARD}
    assert facts.findings == ()


@pytest.mark.usefixtures("two_operators_are_many")
def test_one_with_symbolic_sizes_is_lowered_because_its_guards_are_the_programs():
    assert phases(lowered(Backward.UNLESS_LARGE, dynamic=True)) == {Phase.FORWARD, Phase.BACKWARD}
