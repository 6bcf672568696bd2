"""The operators of an eager run, taken down without data and without the program noticing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx import Graph, GraphModule, symbolic_trace
from torch.utils.checkpoint import CheckpointPolicy, create_selective_checkpoint_contexts

from inductoscope.compiler.predict.eager import EagerRun, Launches
from inductoscope.compiler.simgpu.eager_ops import MOST_OPERATORS, Rerun
from inductoscope.compiler.simgpu.graphs import RECOMPUTING, EagerGraph

pytestmark = pytest.mark.slow

META = "meta"  # a device other than the CPU that every build has


def run(function: Callable[..., Any], *args: Any, graph: Graph | None = None) -> EagerRun:
    return Rerun(graph or Graph(), function, FakeTensorMode(allow_non_fake_inputs=True)).on(args)


def _keep_products() -> Any:
    def policy(_context: Any, op: Any, *_args: Any, **_kwargs: Any) -> CheckpointPolicy:
        kept = op is torch.ops.aten.mm.default
        return CheckpointPolicy.MUST_SAVE if kept else CheckpointPolicy.PREFER_RECOMPUTE

    return create_selective_checkpoint_contexts(policy)


def names(ops: Any) -> list[str]:
    return [op.operator for op in ops]


def tensor(*sizes: int, grad: bool = False) -> torch.Tensor:
    return torch.empty(sizes, device=META, requires_grad=grad)


def test_operators_come_in_order_with_their_traffic() -> None:
    found = run(lambda x, y: (x.t() @ y).relu(), tensor(256, 128), tensor(256, 64))
    assert found.forward is not None and found.backward is None
    assert names(found.forward) == ["t", "mm", "relu"]
    view, product, relu = found.forward
    assert view.launches is Launches.NOTHING
    assert product.flops == 2 * 128 * 256 * 64
    assert product.operands == ("f32[128, 256]", "f32[256, 64]")
    assert product.bytes_moved == 4 * (256 * 128 + 256 * 64 + 128 * 64)
    assert relu.bytes_moved == 2 * 4 * 128 * 64


def test_backward_is_that_of_the_results() -> None:
    found = run(lambda x, w: (x @ w).sin().sum(), tensor(8, 16), tensor(16, 4, grad=True))
    assert found.backward is not None
    assert names(found.backward).count("mm") == 1  # only the weight needs a gradient
    assert "cos" in names(found.backward)


def test_an_expanded_tensor_moves_what_it_has() -> None:
    found = run(lambda x, y: x + y, tensor(1024, 1024), tensor(1024).expand(1024, 1024))
    assert found.forward is not None
    [add] = found.forward
    assert add.bytes_moved == 4 * (2 * 1024 * 1024 + 1024)


def test_an_embedding_reads_only_its_rows() -> None:
    rows = torch.empty(8, device=META, dtype=torch.int64)
    found = run(torch.nn.functional.embedding, rows, tensor(100_000, 16))
    assert found.forward is not None
    [look] = [op for op in found.forward if op.operator == "embedding"]
    assert look.bytes_moved == 2 * 8 * 16 * 4 + 8 * 8


def test_arguments_keep_their_data_and_gradients() -> None:
    value = torch.ones(4, requires_grad=True)
    state = torch.get_rng_state()
    found = run(lambda x: torch.nn.functional.dropout(x.detach().mul_(2).add(x), 0.5), value)
    assert found.missing is None
    assert value.grad is None and torch.equal(value, torch.ones(4))
    assert torch.equal(state, torch.get_rng_state())


def test_a_size_that_depends_on_data_is_said_to_be_unknown() -> None:
    found = run(lambda x: x[x > 0].sum().item(), tensor(4))
    assert found.forward is None
    assert found.missing is not None


def test_nothing_is_launched_for_results_without_elements() -> None:
    found = run(lambda x: x * 2, tensor(0, 16))
    assert found.forward is not None
    assert [op.launches for op in found.forward] == [Launches.NOTHING]


@pytest.mark.parametrize("policy", [None, _keep_products])
def test_backward_computes_checkpointed_regions_again(policy: Any) -> None:
    class Body(torch.nn.Module):
        def forward(self, x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
            return (x @ w).sin() @ w

    region = symbolic_trace(Body())
    if policy is not None:
        region.meta["_checkpoint_context_fn"] = policy
    root = torch.nn.Module()
    root.region = region
    graph = Graph()
    x, w = graph.placeholder("x"), graph.placeholder("w")
    graph.output(
        graph.call_function(torch.ops.higher_order.tag_activation_checkpoint, (graph.get_attr("region"), x, w))
    )
    runner = EagerGraph(GraphModule(root, graph), meanings=RECOMPUTING)
    found = run(runner, tensor(8, 16, grad=True), tensor(16, 16, grad=True), graph=graph)
    assert found.forward is not None and found.backward is not None
    assert names(found.forward).count("mm") == 2
    again = 1 if policy is None else 0  # the first product; the second is not needed
    assert names(found.backward).count("mm") == 4 + again
    assert names(found.backward).count("sin") == 1


def test_the_setting_for_float32_counts_for_products() -> None:
    told, before = [], torch.get_float32_matmul_precision()
    for precision in ("high", "highest"):
        try:
            torch.set_float32_matmul_precision(precision)
            found = run(lambda x: (x @ x).sin(), tensor(8, 8))
        finally:
            torch.set_float32_matmul_precision(before)
        assert found.forward is not None
        told.append([op.tf32 for op in found.forward])
    assert told == [[True, False], [False, False]]


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_composed_operators_are_told_by_their_parts_in_every_mode(mode: Any) -> None:
    with mode():
        linear = run(torch.nn.functional.linear, tensor(8, 16), tensor(4, 16), tensor(4))
        image = run(torch.nn.functional.conv2d, tensor(1, 3, 8, 8), tensor(4, 3, 3, 3), tensor(4))
    assert linear.forward is not None and image.forward is not None
    assert [op.operator for op in linear.forward if op.launches is Launches.KERNELS] == ["addmm"]
    assert [op.operator for op in image.forward] == ["convolution"]
    assert image.forward[0].flops


def test_a_graph_that_branches_by_its_data_is_not_run() -> None:
    class Branch(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.cond(x.sum() > 0, torch.sin, torch.cos, (x,))

    module = torch.export.export(Branch(), (torch.ones(4),)).module()
    assert isinstance(module, GraphModule)
    found = run(lambda x: pytest.fail("it was run"), tensor(4), graph=module.graph)
    assert found.forward is None and found.branches


def test_recurrent_layers_and_endless_graphs_are_not_run() -> None:
    long = symbolic_trace(lambda x: x)
    [given, out] = long.graph.nodes
    with long.graph.inserting_before(out):
        for _ in range(MOST_OPERATORS + 1):
            long.graph.call_function(torch.sin, (given,))
    found = run(lambda x: pytest.fail("it was run"), tensor(4), graph=long.graph)
    assert found.forward is None and str(MOST_OPERATORS) in str(found.missing)
