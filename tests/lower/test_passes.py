"""What the passes over FX graphs are said to have changed, against torch's own counters."""

from __future__ import annotations

import itertools

import pytest

pytest.importorskip("torch")

import torch
from torch._dynamo.utils import counters

from inductoscope.compiler.lower.facts import LowerFacts
from inductoscope.protocol.report import PassFact, PassStage, Phase
from lower.support.driver import line_of, load, lower, run

pytestmark = pytest.mark.slow


def lowered(program) -> LowerFacts:
    counters.clear()
    facts = lower(program)
    assert facts.problems == ()
    return facts


def fired(facts: LowerFacts) -> tuple[int, int]:
    """How often patterns matched, and how many nodes they matched, over all passes."""
    patterns = [pattern for fact in facts.passes for pattern in fact.patterns]
    assert sum(fact.fired or 0 for fact in facts.passes) == sum(pattern.fired for pattern in patterns)
    return sum(pattern.fired for pattern in patterns), sum(pattern.nodes for pattern in patterns)


def torchs_own() -> tuple[int, int]:
    return counters["inductor"]["pattern_matcher_count"], counters["inductor"]["pattern_matcher_nodes"]


def passes(facts: LowerFacts, name: str) -> list[PassFact]:
    return [fact for fact in facts.passes if fact.name == name]


@pytest.fixture(scope="module")
def module():
    return load("patterns")


@pytest.fixture(scope="module")
def facts(module) -> LowerFacts:
    facts = lowered(lambda: run(module))
    assert fired(facts) == torchs_own()
    return facts


def test_attention_is_named_with_its_lines(module, facts):
    found = [p for fact in facts.passes for p in fact.patterns if p.name.startswith("_sfdp_pattern_")]
    assert [pattern.fired for pattern in found] == [1]
    lines = {place.line for place in found[0].lines}
    assert lines == {line_of(module, "scores = "), line_of(module, "mixed = ")}


def test_a_product_and_a_sum_become_one_operator(module, facts):
    (pattern,) = [p for fact in facts.passes for p in fact.patterns if p.name == "addmm"]
    assert pattern.nodes == 2 * pattern.fired
    assert line_of(module, "added = ") in {place.line for place in pattern.lines}


def test_counts_of_operators_join_up(facts):
    by_stage: dict[tuple[Phase, PassStage], list[PassFact]] = {}
    for fact in facts.passes:
        by_stage.setdefault((fact.phase, fact.stage), []).append(fact)
    for stage in (PassStage.JOINT, PassStage.POST_GRAD):
        for phase in (Phase.FORWARD, Phase.BACKWARD):
            row = by_stage.get((phase, stage), [])
            assert all(one.ops_after == other.ops_before for one, other in itertools.pairwise(row))


def test_dead_code_is_seen_where_autograd_traces(facts):
    (fact,) = [fact for fact in passes(facts, "eliminate_dead_code") if fact.stage is PassStage.AUTOGRAD]
    assert fact.ops_after == fact.ops_before - 1


@pytest.mark.parametrize("grad", [True, False])
def test_inference_and_training_agree_with_torchs_counters(grad):
    layers = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Dropout(0.5), torch.nn.Linear(16, 4))

    def program():
        with torch.set_grad_enabled(grad):
            torch.compile(layers)(torch.randn(4, 8))

    assert fired(lowered(program)) == torchs_own()


def test_frozen_parameters_are_folded():
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU()).eval()

    def program():
        with torch.no_grad(), torch._inductor.config.patch(freezing=True):
            torch.compile(model)(torch.randn(1, 3, 8, 8))

    facts = lowered(program)
    assert fired(facts) == torchs_own()
    frozen = [fact for fact in facts.passes if fact.stage is PassStage.FREEZING]
    assert frozen and frozen[-1].ops_after < frozen[0].ops_before


def test_a_branch_is_a_graph_of_its_own():
    def f(x):
        return torch.cond(x.sum() > 0, lambda x: (x.view(64) * 1.0).view(8, 8), lambda x: x.cos() * 1.0, (x,))

    facts = lowered(lambda: torch.compile(f)(torch.randn(8, 8)))
    assert fired(facts) == torchs_own()
    inside = [fact for fact in facts.passes if fact.subgraph is not None]
    assert inside and all(fact.ops_before <= 4 for fact in inside)


def test_watching_a_large_graph_is_cheap():
    from inductoscope.compiler.lower.passes import same, shape_of

    graph = torch.fx.Graph()
    node = graph.placeholder("x")
    for _ in range(50):
        node = graph.call_function(torch.add, (node, 1))
    before = shape_of(graph)
    assert same(before, shape_of(graph))
    node.args = (node.args[0], 2)
    assert not same(before, shape_of(graph))


def test_unused_parts_of_a_captured_graph_are_told():
    def f(x, n):
        with torch.no_grad():
            pass
        return x + 1

    facts = lowered(lambda: torch.compile(f, dynamic=True)(torch.randn(4), 3))
    assert [fact.stage for fact in facts.passes][:1] == [PassStage.DYNAMO]
