"""Captured graphs node by node, against the graph module that a backend is given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import fx  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

from inductoscope.compiler import fx_nodes  # noqa: E402
from inductoscope.compiler.capture import Capture, CaptureFacts, graphs  # noqa: E402
from inductoscope.compiler.usercode import UserCode  # noqa: E402
from inductoscope.protocol.messages import Target, TargetKind  # noqa: E402
from inductoscope.protocol.report import FxGraph, FxNode, Phase, Stage  # noqa: E402

pytestmark = pytest.mark.slow


def plain(x: Any) -> Any:
    h = torch.relu(x)
    y = h.view(-1, 2)[:, 0]
    return torch.cat([y, y + 1], dim=0), x.split(2)


def chosen(x: Any) -> Any:
    return torch.cond(x.sum() > 0, lambda a: a.sin(), lambda a: a.cos() + 1, (x,))


def inner(x: Any) -> Any:
    return x.tanh()


def checkpointed(x: Any) -> Any:
    return checkpoint(inner, x, use_reentrant=False) * 2


def at(function: Callable[..., Any], offset: int) -> int:
    """A line of a function, counted from its `def`."""
    return int(function.__code__.co_firstlineno) + offset


def captured(function: Callable[..., Any], *args: Any, dynamic: bool | None = None) -> tuple[CaptureFacts, Any]:
    """What capture tells of a function, and the module that its backend was given."""
    given: list[fx.GraphModule] = []

    def backend(module: fx.GraphModule, inputs: Any) -> Any:
        given.append(module)
        return module.forward

    torch._dynamo.reset()
    target = Target(__file__, function.__name__, at(function, 0), TargetKind.FUNCTION, function.__name__)
    with Capture(UserCode(), target, lambda finding: None) as capture:
        torch.compile(function, backend=backend, dynamic=dynamic)(*args)
    [module] = given
    return capture.facts(), module


def whole(facts: CaptureFacts) -> FxGraph:
    [graph] = [graph for graph in facts.fx_graphs if graph.body is None]
    return graph


def node(graph: FxGraph, name: str) -> FxNode:
    [found] = [node for node in graph.nodes if node.name == name]
    return found


@pytest.mark.parametrize("function", [plain, chosen, checkpointed])
def test_every_node_is_told_in_order_and_counted_as_torch_does(function: Callable[..., Any]) -> None:
    facts, module = captured(function, torch.randn(4, 4, requires_grad=True))
    graph = whole(facts)
    assert (graph.graph, graph.stage, graph.phase, graph.left_out) == ("0/0", Stage.CAPTURED, Phase.FORWARD, 0)
    assert [(one.name, one.op) for one in graph.nodes] == [(one.name, one.op) for one in module.graph.nodes]
    assert graph.ops == torch._dynamo.utils.count_calls(module.graph) == facts.graphs[0].ops


def test_a_node_has_its_call_result_and_line() -> None:
    graph = whole(captured(plain, torch.randn(4, 4))[0])
    assert node(graph, "h") == FxNode(
        "h", "call_function", "torch.relu", "l_x_", "f32[4, 4]", "cpu", __file__, at(plain, 1)
    )
    view = node(graph, "view")
    assert (view.op, view.target, view.args, view.text) == ("call_method", "view", "h, -1, 2", "f32[8, 2]")
    item = node(graph, "y")
    assert (item.target, item.args) == ("operator.getitem", "view, (slice(None, None, None), 0)")
    joined = next(one for one in graph.nodes if one.target == "torch.cat")
    assert (joined.args, joined.text, joined.line) == ("[y, add], dim = 0", "f32[16]", at(plain, 3))
    split = next(one for one in graph.nodes if one.target == "split")
    assert split.text == "(f32[2, 4], f32[2, 4])"
    assert node(graph, "l_x_").source == "x"
    ends = [one for one in graph.nodes if one.op in ("placeholder", "output")]
    assert [(one.file, one.line) for one in ends] == [(None, None), (None, None)]


def test_symbolic_sizes_stand_with_the_value_they_had() -> None:
    graph = whole(captured(plain, torch.randn(4, 4), dynamic=True)[0])
    text = node(graph, "h").text
    assert text is not None and text.startswith("f32[s") and "=4" in text


def test_the_bodies_that_operators_call_are_told_by_name() -> None:
    facts, _ = captured(chosen, torch.randn(4))
    bodies = {graph.body: [one.target for one in graph.nodes] for graph in facts.fx_graphs}
    assert bodies["cond_true_0"].count("sin") == 1 and bodies["cond_false_0"].count("cos") == 1
    facts, _ = captured(checkpointed, torch.randn(4, requires_grad=True))
    [body] = [graph for graph in facts.fx_graphs if graph.body is not None]
    assert [(one.target, one.line) for one in body.nodes if one.op == "call_method"] == [("tanh", at(inner, 1))]


def test_a_graph_that_is_too_large_is_counted_and_said_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphs, "MOST_NODES", 3)
    facts, module = captured(plain, torch.randn(4, 4))
    graph = whole(facts)
    assert (graph.nodes, graph.left_out, graph.ops) == ((), len(module.graph.nodes), facts.graphs[0].ops)
    [note] = fx_nodes.left_out(facts.fx_graphs)
    assert f"0/0 captured forward ({graph.left_out} nodes)" in note


def test_long_arguments_are_cut() -> None:
    def literal(x: Any) -> Any:
        return x + torch.tensor(list(range(2000)))

    graph = whole(captured(literal, torch.zeros(2000))[0])
    longest = max(len(one.args) for one in graph.nodes)
    assert longest == fx_nodes.MOST_TEXT + 1 and all(
        len(one.args) < 20 for one in graph.nodes if not one.args.endswith("…")
    )
