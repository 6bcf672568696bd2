"""Where FX graphs can be seen on their way through AOTAutograd and Inductor, and what a node of one says.

The points are in `torch._inductor.compile_fx`, checked by running on torch 2.11 to 2.15.  Torch writes nodes with
private functions that move between versions (`torch.fx.node._get_qualified_name`), so they are written here.  This
module knows nothing of reports.
"""

from __future__ import annotations

import builtins
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import fx

from inductoscope.compiler.compat.inductor import Make, Point

_C = "torch._inductor.compile_fx"
PARTITION = Point(_C, "partition_fn", "the joint graph, and the forward and backward graphs that it is cut into")
COMPILE_FORWARD = Point(_C, "compile_fx_forward", "a graph that is compiled for inference is not partitioned")
COMPILE_FREEZING = Point(_C, "fw_compiler_freezing", "the same with the weights frozen into the code")

ALL_POINTS: tuple[Point, ...] = (PARTITION, COMPILE_FORWARD, COMPILE_FREEZING)

_OPERATORS = ("_operator", "operator")

Partitioned = Callable[[fx.GraphModule, fx.GraphModule, int], None]


def partitions(on_joint: Callable[[fx.GraphModule], None], on_partitioned: Partitioned) -> Make:
    """A replacement for `PARTITION`; `on_partitioned` gets forward, backward and how many results are the program's.

    The bodies of nested regions are partitioned too, before the graph that holds them and without inputs of their own:
    those are left alone.
    """

    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        def partition_fn(module: fx.GraphModule, joint_inputs: Sequence[object], **options: Any) -> Any:
            if not joint_inputs:
                return original(module, joint_inputs, **options)
            on_joint(module)
            forward, backward = original(module, joint_inputs, **options)
            on_partitioned(forward, backward, int(options["num_fwd_outputs"]))
            return forward, backward

        return partition_fn

    return make


def inference(on_graph: Callable[[fx.GraphModule], None]) -> Make:
    """A replacement for `COMPILE_FORWARD`."""

    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(original)

        def compile_fx_forward(*args: Any, **kwargs: Any) -> Any:
            if signature.bind(*args, **kwargs).arguments.get("is_inference", False):
                on_graph(args[0])
            return original(*args, **kwargs)

        return compile_fx_forward

    return make


def freezing(on_graph: Callable[[fx.GraphModule], None]) -> Make:
    """A replacement for `COMPILE_FREEZING`."""

    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        def fw_compiler_freezing(module: fx.GraphModule, *args: Any, **kwargs: Any) -> Any:
            on_graph(module)
            return original(module, *args, **kwargs)

        return fw_compiler_freezing

    return make


def value_of(node: fx.Node) -> Any:
    """What a node makes, as fake tensors: `val` in graphs of AOTAutograd, `example_value` in those of Dynamo."""
    value = node.meta.get("val")
    return node.meta.get("example_value") if value is None else value


def source_of(node: fx.Node) -> str | None:
    """Where Dynamo took an input of a captured graph from (`L['self']._parameters['weight']`); None where unknown.

    The record is `meta["grapharg"]`; the name of a source is a method up to 2.11 and a property later.
    """
    name = getattr(getattr(node.meta.get("grapharg"), "source", None), "name", None)
    found = name() if callable(name) else name
    return found if isinstance(found, str) else None


def input_index(node: fx.Node) -> int | None:
    """Which input of the captured graph an input of AOTAutograd's is; None for what AOTAutograd adds (2.9 to 2.15)."""
    described = node.meta.get("desc")
    return int(described.idx) if type(described).__name__ == "PlainAOTInput" else None


def target_text(node: fx.Node) -> str:
    """What a node calls or reads, as torch writes it: `torch.ops.aten.add.Tensor`, `operator.getitem`, `view`."""
    return node.target if isinstance(node.target, str) else _qualified(node.target)


def arguments_text(node: fx.Node, limit: int) -> str:
    """The arguments of a node as Python writes them, nodes by name; cut at `limit` characters."""
    named = (f"{name} = {_text(value)}" for name, value in node.kwargs.items())
    text = ", ".join((*map(_text, node.args), *named))
    return text if len(text) <= limit else f"{text[:limit]}…"


def recomputed_on_request(node: fx.Node) -> bool:
    """Whether the program itself asked for a node to be computed again (`torch.utils.checkpoint`).

    AOTAutograd carries the policy along as `meta["recompute"]`; its members are public
    (`torch.utils.checkpoint.CheckpointPolicy`).
    """
    policy = torch.utils.checkpoint.CheckpointPolicy
    return node.meta.get("recompute") in (policy.MUST_RECOMPUTE, policy.PREFER_RECOMPUTE)


def operator_given(node: fx.Node) -> str | None:
    """The operator (`aten.rand`) that a node is given as an argument, None where there is none.

    `OpOverload` has no public name, nor has its schema (2.1 to 2.15).
    """
    given = next((one for one in node.args if isinstance(one, torch._ops.OpOverload)), None)
    return f"{given.namespace}.{given._schema.name.split('::')[-1]}" if given is not None else None


def _text(value: Any) -> str:
    if isinstance(value, fx.Node):
        return value.name
    if isinstance(value, tuple):
        inside = ", ".join(map(_text, value))
        return f"({inside},)" if len(value) == 1 else f"({inside})"
    if isinstance(value, list):
        return f"[{', '.join(map(_text, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key!r}: {_text(item)}" for key, item in value.items()) + "}"
    if isinstance(value, slice):
        return f"slice({_text(value.start)}, {_text(value.stop)}, {_text(value.step)})"
    if callable(value) and hasattr(value, "__name__"):
        return _qualified(value)
    return repr(value)


def _qualified(function: Any) -> str:
    if isinstance(function, torch._ops.OpOverload | torch._ops.OpOverloadPacket):
        return f"torch.ops.{function}"
    if isinstance(function, torch._ops.HigherOrderOperator):
        return f"torch.ops.{function.namespace}.{function.name()}"
    name = getattr(function, "__name__", None)
    if name is None:
        return str(function)
    if getattr(builtins, name, None) is function:
        return str(name)
    module = getattr(function, "__module__", None)
    if module in _OPERATORS:
        return f"operator.{name}"
    if module is None and getattr(torch, name, None) is function:
        module = "torch"
    return f"{module}.{name}" if module else str(name)
