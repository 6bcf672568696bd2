"""What the forward keeps and the backward computes again, against torch's own account of the same programs."""

from __future__ import annotations

import re

import pytest

torch = pytest.importorskip("torch")

from inductoscope.compiler.lower import LowerFacts  # noqa: E402
from inductoscope.protocol.report import (  # noqa: E402
    FxGraph,
    Phase,
    RecomputeReason,
    SavedKind,
    SavedTensor,
    Stage,
)
from lower.support import driver, kept  # noqa: E402

pytestmark = pytest.mark.slow

MODELS = driver.load("kept")
PROGRAMS = tuple(MODELS.PROGRAMS)


def train(name: str, **options: object) -> LowerFacts:
    """One training step of a program of the model file."""
    make, inputs = MODELS.PROGRAMS[name]
    facts = driver.lower(lambda: torch.compile(make(), **options)(inputs()).sum().backward())
    assert facts.problems == () and [one for one in facts.findings if one.code == "compile-error"] == []
    return facts


def graph(facts: LowerFacts, stage: Stage, phase: Phase) -> FxGraph:
    [found] = [one for one in facts.fx_graphs if (one.stage, one.phase, one.body) == (stage, phase, None)]
    return found


def line(text: str) -> int:
    return driver.line_of(MODELS, f"# {text}")


def as_kept(saved: SavedTensor) -> kept.Kept:
    sizes = re.findall(r"(?:\w+=)?(\d+)(?=[,\]])", saved.text.partition("[")[2])
    assert saved.bytes is not None
    return kept.Kept(tuple(map(int, sizes)), saved.bytes)


@pytest.mark.parametrize("name", PROGRAMS)
def test_autograd_keeps_what_the_report_says(name):
    make, inputs = MODELS.PROGRAMS[name]
    torch.manual_seed(0)
    truth = kept.kept_by_autograd(kept.partitioned(make()), inputs())
    facts = train(name)
    assert truth
    assert sorted(as_kept(one) for one in facts.saved if one.kind is not SavedKind.SIZE) == truth


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_graphs_are_those_that_torch_writes_down(name):
    with kept.graph_texts() as texts:
        facts = train(name)
    [joint], [forward], [backward] = (texts[f"aot_{kind}_graph"] for kind in ("joint", "forward", "backward"))
    stages = {
        (Stage.JOINT, Phase.FORWARD): joint,
        (Stage.PARTITIONED, Phase.FORWARD): forward,
        (Stage.PARTITIONED, Phase.BACKWARD): backward,
    }
    for (stage, phase), text in stages.items():
        told = graph(facts, stage, phase)
        assert [node.name for node in told.nodes if node.op == "call_function"] == kept.operators(text)
        assert told.ops == len(kept.operators(text))
    both = set(kept.operators(forward)) & set(kept.operators(backward))
    assert {one.name for one in facts.recomputed} == {one for one in both if not one.startswith("getitem")}
    assert kept.returned(forward)[-len(facts.saved) :] == [one.name for one in facts.saved]


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_backward_kernel_and_operator_of_torchs_belongs_to_a_forward_line(name):
    facts = train(name)
    backward = [kernel for kernel in facts.kernels if kernel.phase is Phase.BACKWARD]
    assert backward
    without = [kernel.name for kernel in backward if not kernel.lines]
    # torch 2.11 gives no line to the addmm that it makes of a product and the sum of two gradients.
    assert without == [] or (torch.__version__ < (2, 12) and without == ["extern_kernels.addmm"])
    lost = [node.name for node in graph(facts, Stage.PARTITIONED, Phase.BACKWARD).nodes if not node.line]
    inputs = [node.name for node in graph(facts, Stage.PARTITIONED, Phase.BACKWARD).nodes if node.op == "placeholder"]
    assert lost == [*inputs, "output"]


def test_what_is_kept_knows_its_kind_and_line():
    facts = train("mlp")
    assert [(one.kind, one.text, one.bytes, one.op, one.line) for one in facts.saved] == [
        (SavedKind.INPUT, "f32[32, 16]", 2048, None, None),
        (SavedKind.INPUT, "f32[8, 16]", 512, None, None),
        (SavedKind.INPUT, "f32[16, 32]", 2048, None, None),
        (SavedKind.ACTIVATION, "f32[8, 32]", 1024, "aten.relu", line("mlp: up")),
    ]


def test_inputs_have_the_programs_own_names():
    facts = train("mlp")
    assert [one.source for one in facts.saved] == ["self.up.weight", "x", "self.down.weight", None]
    joint = graph(facts, Stage.JOINT, Phase.FORWARD)
    assert [node.source for node in joint.nodes if node.op == "placeholder"] == [
        "self.up.weight",
        "self.up.bias",
        "x",
        "self.down.weight",
        "self.down.bias",
        None,
    ]


def test_results_of_an_operator_with_several_are_told_by_that_operator():
    kinds = {(one.op, one.line) for one in train("norm and gelu").saved if one.op == "aten.var_mean"}
    assert kinds == {("aten.var_mean", line("norm"))}


def test_a_view_of_an_input_is_an_input_and_names_it():
    [view] = [one for one in train("attention").saved if one.op == "aten.view"]
    assert view.kind is SavedKind.INPUT and view.base is not None and view.base.startswith("primals_")
    assert view.source == "x"


def test_the_partitioner_computes_cheap_operators_again():
    again = [one for one in train("norm and gelu").recomputed if one.line == line("gelu")]
    assert "aten.erf" in [one.op for one in again]
    assert {one.reason for one in again} == {RecomputeReason.PARTITIONER}


def test_a_checkpointed_block_is_computed_again_because_the_program_says_so():
    facts = train("checkpointed")
    asked = {(one.op, one.line) for one in facts.recomputed if one.reason is RecomputeReason.CHECKPOINT}
    tanh, sigmoid = line("inside: tanh"), line("inside: sigmoid")
    assert {("aten.tanh", tanh), ("aten.sigmoid", sigmoid), ("aten.addmm", tanh), ("aten.addmm", sigmoid)} <= asked
    kept_lines = {one.line for one in facts.saved if one.kind is SavedKind.ACTIVATION}
    assert kept_lines == {line("outside")}


def test_a_random_operator_is_repeated_with_the_random_state_that_is_kept():
    with torch._inductor.config.patch(fallback_random=True):
        facts = train("checkpointed dropout")
    [dropout] = [one for one in facts.recomputed if one.op == "aten.native_dropout"]
    assert (dropout.reason, dropout.line) == (RecomputeReason.CHECKPOINT, line("inside: dropout"))
    [state] = [one for one in facts.saved if one.op == "run_and_save_rng_state"]
    assert (state.kind, state.line) == (SavedKind.ACTIVATION, line("inside: dropout"))


def test_what_an_own_function_keeps_belongs_to_its_line():
    saved = train("own autograd function").saved
    assert ("aten.exp", line("own forward")) in [(one.op, one.line) for one in saved]


def test_a_gradient_from_two_sides_belongs_to_the_line_of_the_value():
    facts = train("used twice")
    backward = graph(facts, Stage.PARTITIONED, Phase.BACKWARD)
    sums = [node for node in backward.nodes if node.target == "torch.ops.aten.add.Tensor"]
    assert line("used twice") in [node.line for node in sums]
    assert line("loss") in [node.line for node in backward.nodes]
    lines = {place.line for kernel in facts.kernels if kernel.phase is Phase.BACKWARD for place in kernel.lines}
    assert {line("used twice"), line("both uses"), line("loss")} <= lines


def test_symbolic_sizes_are_kept_as_sizes_and_counted_with_the_value_they_had():
    inputs = MODELS.rows(8)
    model = MODELS.Wide()
    truth = kept.kept_by_autograd(kept.partitioned(model, dynamic=True), inputs)
    facts = driver.lower(lambda: torch.compile(model, dynamic=True)(inputs).sum().backward())
    tensors = [one for one in facts.saved if one.kind is not SavedKind.SIZE]
    [size] = [one for one in facts.saved if one.kind is SavedKind.SIZE]
    assert re.fullmatch(r"s\d+=8", size.text) and size.bytes is None
    assert f"f32[{size.text}, 16]" in [one.text for one in tensors]
    assert sorted(map(as_kept, tensors)) == truth


def test_without_gradients_nothing_is_kept_and_there_is_one_graph():
    def infer() -> None:
        with torch.no_grad():
            torch.compile(MODELS.Mlp())(MODELS.rows(8))

    facts = driver.lower(infer)
    assert (facts.saved, facts.recomputed) == ((), ())
    stages = [(one.stage, one.phase) for one in facts.fx_graphs]
    assert stages == [(Stage.PARTITIONED, Phase.FORWARD), (Stage.LOWERED, Phase.FORWARD)]


def test_an_optimizer_step_keeps_nothing():
    weights = [torch.nn.Parameter(torch.randn(4, 4)) for _ in range(2)]
    for weight in weights:
        weight.grad = torch.ones_like(weight)
    optimizer = torch.optim.Adam(weights)

    def step() -> None:
        optimizer.step()

    facts = driver.lower(torch.compile(step))
    assert facts.problems == ()
    assert facts.fx_graphs and {one.phase for one in facts.fx_graphs} == {Phase.FORWARD}
    assert (facts.saved, facts.recomputed) == ((), ())
