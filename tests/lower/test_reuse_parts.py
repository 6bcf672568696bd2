"""The parts of which the reuse of lowered graphs is made."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

pytest.importorskip("torch")

import torch

from inductoscope.compiler.compat import identity, size_guards
from inductoscope.compiler.compat.identity import UncertainError
from inductoscope.compiler.lower.reuse.key import named
from inductoscope.compiler.lower.reuse.lines import Lines, NoSuchLineError
from inductoscope.compiler.lower.reuse.shelf import Shelf

pytestmark = pytest.mark.slow


def graph(*stacks: str) -> torch.fx.GraphModule:
    """A chain of operators with the given stacks."""
    made = torch.fx.Graph()
    value = made.placeholder("x")
    value.meta["example_value"] = torch.empty(2)
    for stack in stacks:
        value = made.call_function(torch.relu, (value,))
        value.meta["stack_trace"] = stack
    made.output(value)
    return torch.fx.GraphModule(torch.nn.Module(), made)


def frame(line: int, function: str = "forward", file: str = "model.py") -> str:
    return f'  File "{file}", line {line}, in {function}\n    y = f(x)\n'


def lines(*stacks: str) -> Lines:
    return Lines.of(list(graph(*stacks).graph.nodes), lambda file: "user")


def test_facts_move_with_their_nodes() -> None:
    before, after = lines(frame(3), frame(5)), lines(frame(8, file="moved.py"), frame(21, file="moved.py"))
    assert before.shape == after.shape
    facts = [{"file": "model.py", "line": 5, "ops": [{"file": None, "line": None}]}, {"file": "model.py", "line": 3}]
    kept = before.numbered(facts)
    assert "model.py" not in str(kept)
    assert after.placed(kept) == [
        {"file": "moved.py", "line": 21, "ops": [{"file": None, "line": None}]},
        {"file": "moved.py", "line": 8},
    ]


@pytest.mark.parametrize(
    "others",
    [
        pytest.param((frame(3), frame(3)), id="joined"),
        pytest.param((frame(5), frame(3)), id="the other way round"),
        pytest.param((frame(3), frame(5, "other")), id="another function"),
        pytest.param((frame(3), frame(5, file="z.py")), id="two files, one order"),
        pytest.param((frame(3) + frame(9, "inner"), frame(5)), id="called from elsewhere"),
    ],
)
def test_lines_that_nodes_share_otherwise_are_another_graph(others: tuple[str, str]) -> None:
    same = others == (frame(3), frame(5, file="z.py"))  # only how lines are shared and ordered counts
    assert (lines(frame(3), frame(5)).shape == lines(*others).shape) == same


def test_the_rest_of_a_function_is_named_after_the_line_that_broke_now() -> None:
    before, after = (
        lines(frame(7, "torch_dynamo_resume_in_forward_at_5")),
        lines(frame(9, "torch_dynamo_resume_in_forward_at_7")),
    )
    assert before.shape == after.shape != lines(frame(9)).shape
    kept = before.numbered([{"file": "model.py", "line": 7, "function": "torch_dynamo_resume_in_forward_at_5"}])
    moved = [{"file": "model.py", "line": 9, "function": "torch_dynamo_resume_in_forward_at_7"}]
    assert after.placed(kept) == moved


def test_several_rests_of_a_function_on_one_line_are_not_told_apart() -> None:
    stack = frame(7, "torch_dynamo_resume_in_forward_at_5"), frame(7, "torch_dynamo_resume_in_forward_at_6")
    with pytest.raises(NoSuchLineError):
        lines(*stack).numbered({"file": "model.py", "line": 7, "function": "torch_dynamo_resume_in_forward_at_5"})


def test_a_line_of_no_node_is_not_kept() -> None:
    with pytest.raises(NoSuchLineError):
        lines(frame(3)).numbered({"file": "model.py", "line": 4})


def key(model: torch.fx.GraphModule, *inputs: object) -> str:
    return named(model, inputs or (torch.empty(2),), ["circumstances"], lambda file: "user").key


def test_keys_tell_graphs_inputs_and_constants_apart() -> None:
    model = graph(frame(3))
    assert key(model) == key(graph(frame(4)))
    others = [
        key(graph(frame(3), frame(4))),
        key(model, torch.empty(2, dtype=torch.float64)),
        key(model, torch.empty(4)[::2]),
        key(model, torch.empty(3)[1:]),
        key(model, torch.empty(2, requires_grad=True)),
        key(model, torch.nn.Parameter(torch.empty(2))),
    ]
    assert len({key(model), *others}) == 1 + len(others)


def test_keys_tell_shared_memory_apart() -> None:
    model, whole = graph(frame(3)), torch.empty(4)
    apart = key(model, torch.empty(4)[:2], torch.empty(4)[2:])
    assert key(model, whole[:2], whole[2:]) != apart
    assert key(model, torch.empty(4)[:2], torch.empty(4)[2:]) == apart


def test_constants_count_by_value() -> None:
    def holding(value: float) -> torch.fx.GraphModule:
        made = graph(frame(3))
        made.register_buffer("held", torch.tensor([value]))
        output = next(node for node in made.graph.nodes if node.op == "output")
        with made.graph.inserting_before(output):
            held = made.graph.get_attr("held")
        output.args = ((output.args[0], held),)
        return made

    assert key(holding(1.0)) == key(holding(1.0))
    assert key(holding(1.0)) != key(holding(2.0))


class _Subclass(torch.Tensor):
    pass


def own_function(x: torch.Tensor) -> torch.Tensor:
    return x


def test_what_cannot_be_told_makes_a_graph_uncertain() -> None:
    calling = graph(frame(3))
    next(node for node in calling.graph.nodes if node.op == "call_function").target = own_function
    for model, given in ((calling, torch.empty(2)), (graph(frame(3)), torch.empty(2).as_subclass(_Subclass))):
        with pytest.raises(UncertainError):
            key(model, given)


def test_a_pass_of_the_programs_own_makes_every_graph_uncertain() -> None:
    import torch._inductor.config as inductor

    with inductor.patch(post_grad_custom_post_pass=own_function), pytest.raises(UncertainError, match="post_grad"):
        identity.settings_text({})
    with inductor.patch(freezing=True), pytest.raises(UncertainError, match="freezing"):
        identity.settings_text({})


def test_a_damaged_entry_is_none(tmp_path: Path) -> None:
    of = named(graph(frame(3)), (torch.empty(2),), [], lambda file: "user")
    file = tmp_path / of.key[:2] / f"{of.key}.zip"
    file.parent.mkdir()
    file.write_bytes(b"PK\x03\x04 half of it")
    assert Shelf(tmp_path).take(of) is None
    assert not file.exists()


def test_guards_on_sizes_are_added_again() -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    def compiling() -> contextlib.AbstractContextManager[object]:
        mode = FakeTensorMode(shape_env=ShapeEnv())
        return torch._guards.tracing(torch._guards.TracingContext(mode))

    def size() -> torch.SymInt:
        from torch._dynamo.source import LocalSource, TensorProperty, TensorPropertySource
        from torch.fx.experimental.symbolic_shapes import DimDynamic

        env = identity.shape_env()
        source = TensorPropertySource(LocalSource("x"), TensorProperty.SIZE, 0)
        symbol = env.create_symbol(24, source, dynamic_dim=DimDynamic.DYNAMIC, constraint_dim=None)
        made: torch.SymInt = env.create_symintnode(symbol, hint=24, source=source)
        return made

    with compiling():
        extent = size()
        before = size_guards.before()
        assert extent % 8 == 0 and extent * 2 < 100 and extent != 7
        added = size_guards.added(before)
        known = identity.sizes_text(identity.shape_env())
    assert len(added.guards) == 3
    with compiling():
        size()
        assert size_guards.add(added)
        assert identity.sizes_text(identity.shape_env()) == known
    with compiling():
        other = size()
        assert other > 20
        assert not size_guards.add(added)
