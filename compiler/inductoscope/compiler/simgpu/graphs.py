"""Runs a graph that Dynamo captured, node by node, with the meaning that the program would have without compilation.

Knows FX and higher-order operators; knows nothing of devices, so it serves CPU graphs too.  Make the `EagerGraph`
before the compiler gets the graph: compiling changes graphs in place.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch.fx import GraphModule, Interpreter, Node
from torch.utils.checkpoint import checkpoint

# Called with a node's `stack_trace` around its run.
AtNode = Callable[[str | None], AbstractContextManager[None]]


class EagerGraph:
    """A copy of a captured graph, as a callable.  Tensors that the graph holds are shared with the original.

    `meanings` say what higher-order operators do, by name.
    """

    def __init__(
        self,
        module: GraphModule,
        at_node: AtNode = lambda _: nullcontext(),
        meanings: Mapping[str, Callable[..., Any]] | None = None,
    ) -> None:
        self._module = _copied(module)
        self._at_node = at_node
        self._meanings = _PLAIN if meanings is None else meanings
        self.policy: Callable[..., Any] | None = module.meta.get("_checkpoint_context_fn")
        """What a checkpointed region keeps for backward, where the program says so (`context_fn`)."""

    def __call__(self, *args: Any) -> Any:
        """Run the graph; arguments and results as of the captured graph's `forward`."""
        return _Runner(self._module, self._at_node, self._meanings).run(*args)


class _Runner(Interpreter):
    def __init__(self, module: GraphModule, at_node: AtNode, meanings: Mapping[str, Callable[..., Any]]) -> None:
        super().__init__(module)
        self.extra_traceback = False  # a user's exception must keep its own text
        self._at_node = at_node
        self._meanings = meanings

    def run_node(self, node: Node) -> Any:
        if node.op not in ("call_function", "call_method", "call_module"):
            return super().run_node(node)
        with self._at_node(node.stack_trace):
            return super().run_node(node)

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        meaning = _meaning(target, self._meanings)
        if meaning is None:
            return super().call_function(target, args, kwargs)
        bodies = tuple(self._body(arg) for arg in args)
        return meaning(*bodies, **{name: self._body(value) for name, value in kwargs.items()})

    def _body(self, arg: Any) -> Any:
        return EagerGraph(arg, self._at_node, self._meanings) if isinstance(arg, GraphModule) else arg


def plain_meaning(target: Any) -> Callable[..., Any] | None:
    """What a higher-order operator does outside the compiler, if that is just calling its bodies."""
    return _meaning(target, _PLAIN)


def _meaning(target: Any, meanings: Mapping[str, Callable[..., Any]]) -> Callable[..., Any] | None:
    return meanings.get(target.name()) if isinstance(target, torch._ops.HigherOrderOperator) else None


def _copied(module: GraphModule) -> GraphModule:
    """The same graph in another object, recursively for the bodies of higher-order operators."""
    twin = GraphModule(module, copy.deepcopy(module.graph), module.__class__.__name__)
    twin.meta.update(module.meta)
    for name, child in module.named_children():
        if isinstance(child, GraphModule):
            setattr(twin, name, _copied(child))
    return twin


def _while_loop(cond: Callable[..., Any], body: Callable[..., Any], carry: Any, extra: Any = ()) -> tuple[Any, ...]:
    carry = tuple(carry)
    while bool(cond(*carry, *extra)):
        carry = tuple(body(*carry, *extra))
    return carry


def _call(body: Callable[..., Any], *args: Any, **_options: Any) -> Any:
    """Just the body; options such as `use_reentrant` say how a backward would recompute."""
    return body(*args)


def _checkpointed(body: EagerGraph, *args: Any, **_options: Any) -> Any:
    """The region as eager execution has it: computed again by backward, but for what its policy keeps."""
    policy = {"context_fn": body.policy} if body.policy is not None else {}
    return checkpoint(body, *args, use_reentrant=False, preserve_rng_state=False, **policy)


# Higher-order operators that are plain calls outside the compiler.  Their own rules for autograd would trace instead.
_PLAIN: dict[str, Callable[..., Any]] = {
    "cond": lambda pred, if_true, if_false, operands=(): (if_true if bool(pred) else if_false)(*operands),
    "while_loop": _while_loop,
    "tag_activation_checkpoint": _call,
    "wrap": _call,
    "invoke_subgraph": lambda body, _name, *args: body(*args),
}

RECOMPUTING = {**_PLAIN, "tag_activation_checkpoint": _checkpointed}
"""The same, with a backward that computes checkpointed regions again."""
