"""The operators of an eager run, taken down without data and without the program noticing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx import Graph, symbolic_trace

from inductoscope.compiler.predict.eager import EagerRun, Launches
from inductoscope.compiler.simgpu.eager_ops import MOST_OPERATORS, Rerun

pytestmark = pytest.mark.slow

META = "meta"  # a device other than the CPU that every build has


def run(function: Callable[..., Any], *args: Any, graph: Graph | None = None) -> EagerRun:
    return Rerun(graph or Graph(), function, FakeTensorMode(allow_non_fake_inputs=True)).on(args)


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


def test_recurrent_layers_and_endless_graphs_are_not_run() -> None:
    long = symbolic_trace(lambda x: x)
    [given, out] = long.graph.nodes
    with long.graph.inserting_before(out):
        for _ in range(MOST_OPERATORS + 1):
            long.graph.call_function(torch.sin, (given,))
    found = run(lambda x: pytest.fail("it was run"), tensor(4), graph=long.graph)
    assert found.forward is None and str(MOST_OPERATORS) in str(found.missing)
