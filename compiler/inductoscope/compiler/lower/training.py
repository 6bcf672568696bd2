"""What the forward pass of a graph keeps for its backward pass, and what the backward computes again instead.

Read off the two graphs that AOTAutograd's partitioner makes: what the forward returns beyond the program's own results
is kept, and an operator that stands in both by the same name is computed twice.  It knows nothing of kernels.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import fx

from inductoscope.compiler.compat import dynamo_values, inductor
from inductoscope.compiler.compat import fx as compat
from inductoscope.compiler.fx_nodes import SourceOf, described
from inductoscope.compiler.layouts import size_text
from inductoscope.compiler.lower.nodes import op_name
from inductoscope.compiler.lower.places import Places
from inductoscope.protocol.report import Place, Recomputation, RecomputeReason, SavedKind, SavedTensor

_REPLAYED = re.compile(r"rng_state_output_(\d+)")  # the input of a backward graph that holds a forward's random state


@dataclass(frozen=True)
class Partitioned:
    """A training graph cut in two; the first `results` outputs of `forward` are the program's own."""

    graph: str
    forward: fx.GraphModule
    backward: fx.GraphModule
    results: int


def saved(of: Partitioned, places: Places, source_of: SourceOf) -> tuple[SavedTensor, ...]:
    """Every value that the forward returns for the backward, in that order."""
    return tuple(replace(_saved(node, of.graph, places), source=source_of(_base(node))) for node in _kept(of))


def recomputed(of: Partitioned, places: Places) -> tuple[Recomputation, ...]:
    """Every operator that both compute, in the order of the backward."""
    return tuple(_recomputed(of, places))


def _kept(of: Partitioned) -> list[fx.Node]:
    outputs = _outputs(of.forward)
    return [node for node in outputs[of.results :] if isinstance(node, fx.Node)]


def _outputs(module: fx.GraphModule) -> Sequence[object]:
    output = next(node for node in reversed(module.graph.nodes) if node.op == "output")
    returned = output.args[0]
    return returned if isinstance(returned, list | tuple) else [returned]


def _saved(node: fx.Node, graph: str, places: Places) -> SavedTensor:
    value = compat.value_of(node)
    base = _base(node)
    place = _place(node, places)
    if isinstance(value, torch.Tensor):
        kind = SavedKind.INPUT if base.op in ("placeholder", "get_attr") else SavedKind.ACTIVATION
        text = described(node)[0] or "tensor"
    elif isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool | int | float):
        kind, text = SavedKind.SIZE, _number(value)
    else:  # an object, such as a random generator
        kind, text = SavedKind.ACTIVATION, type(value).__name__
    return SavedTensor(
        graph=graph,
        name=node.name,
        kind=kind,
        text=text,
        bytes=_bytes(value),
        op=op_name(_producer(node)),
        file=place.file if place else None,
        line=place.line if place else None,
        base=base.name if base is not node else None,
    )


def _number(value: object) -> str:
    return size_text(dynamo_values.size(value)) if isinstance(value, torch.SymInt | int) else str(value)


def _bytes(value: object) -> int | None:
    """What the elements of a tensor take in memory; elements that a stride of 0 repeats count once."""
    if not isinstance(value, torch.Tensor) or value.layout is not torch.strided:
        return None
    total = value.element_size()
    for extent, stride in zip(value.shape, value.stride(), strict=True):
        size = dynamo_values.size(extent).value
        if size is None:
            return None
        total *= 1 if dynamo_values.size(stride).expression == "0" else size
    return total


def _base(node: fx.Node) -> fx.Node:
    """The value whose memory a node looks at: the node itself unless it is a view."""
    while True:
        producer = _producer(node)
        called = inductor.operator_of(producer)
        if called is None or not called.only_views or not isinstance(producer.args[0], fx.Node):
            return node
        node = producer.args[0]


def _producer(node: fx.Node) -> fx.Node:
    """The operator behind one of several results."""
    if node.target is operator.getitem and isinstance(node.args[0], fx.Node):
        return node.args[0]
    return node


def _place(node: fx.Node, places: Places) -> Place | None:
    if node.op == "placeholder":
        return None
    parts = (user for user in _producer(node).users if user.target is operator.getitem)  # a wrapper has no line itself
    stacks = (one.meta.get("stack_trace") for one in (node, _producer(node), *parts))
    return places.in_stack(next((stack for stack in stacks if stack), None))


def _recomputed(of: Partitioned, places: Places) -> Iterator[Recomputation]:
    first = {node.name: node for node in of.forward.graph.nodes if node.op == "call_function"}
    replayed = _replayed(of)
    for node in of.backward.graph.nodes:
        twin = replayed.get(node) or _same(first.get(node.name), node)
        wrapped = _wrapped_name(node)
        name = wrapped or op_name(node)
        if twin is None or name is None:
            continue
        called = inductor.operator_of(node)
        place = _place(twin, places)
        asked = wrapped is not None or compat.recomputed_on_request(twin)
        yield Recomputation(
            graph=of.graph,
            name=node.name,
            op=name,
            reason=RecomputeReason.CHECKPOINT if asked else RecomputeReason.PARTITIONER,
            text=described(twin)[0],
            view=called is not None and called.only_views,
            file=place.file if place else None,
            line=place.line if place else None,
        )


def _same(twin: fx.Node | None, node: fx.Node) -> fx.Node | None:
    return twin if twin is not None and twin.target is node.target else None


def _replayed(of: Partitioned) -> dict[fx.Node, fx.Node]:
    """Random operators that the backward repeats with the forward's random state, and their twins in the forward.

    Only checkpointing makes these (`functionalize_rng_ops`): the k-th state that the forward returns is the backward's
    input `rng_state_output_k`.
    """
    states = [_producer(node) for node in _kept(of) if _saves_state(_producer(node))]
    found: dict[fx.Node, fx.Node] = {}
    for node in of.backward.graph.nodes:
        state = node.args[0] if node.args else None
        match = _REPLAYED.fullmatch(state.name) if isinstance(state, fx.Node) else None
        if match and int(match[1]) < len(states):
            made = states[int(match[1])]
            found[node] = next((user for user in made.users if user.args[1] == 1), made)
    return found


def _saves_state(node: fx.Node) -> bool:
    return inductor.higher_order_name(node) == "run_and_save_rng_state"


def _wrapped_name(node: fx.Node) -> str | None:
    """The operator that a random operator's wrapper calls."""
    if inductor.higher_order_name(node) not in ("run_with_rng_state", "graphsafe_run_with_rng_state"):
        return None
    return compat.operator_given(node)
