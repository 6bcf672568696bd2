"""The name of a captured graph among all that were ever lowered: a hash of all that Inductor's output depends on.

What cannot be told by a text makes the graph `UncertainError`, and nothing of it is kept.  Names of files and numbers
of lines do not count; in which way nodes share lines does (see `lines`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from inductoscope.compiler.compat import fx as fx_compat
from inductoscope.compiler.compat import identity
from inductoscope.compiler.compat.identity import UncertainError
from inductoscope.compiler.lower.reuse.lines import KindOf, Lines

FORMAT = 1
"""Part of every key: raised when older entries must not be read as newer ones."""

_TOLD_ELSEWHERE = frozenset({"stack_trace", "nn_module_stack", "source_fn_stack", "grapharg", "example_value"})
_OF_NO_CONSEQUENCE = frozenset({"creation_timestamp", "dynamo_compile_id", "backend_id"})


@dataclass(frozen=True)
class Named:
    """A graph's key and its lines."""

    key: str
    lines: Lines


def named(model: fx.GraphModule, inputs: Sequence[Any], circumstances: Sequence[str], kind_of: KindOf) -> Named:
    """The key of `model` called with `inputs`; `circumstances` are texts about everything else that counts.

    Raises `UncertainError`.
    """
    graphs = dict(_graphs(model, ""))
    lines = Lines.of([node for module in graphs.values() for node in module.graph.nodes], kind_of)
    storages = _Storages()
    parts = [
        str(FORMAT),
        *circumstances,
        lines.shape,
        *(_input_text(value, storages) for value in inputs),
        *(part for name, module in graphs.items() for part in _graph_texts(name, module)),
    ]
    return Named(_hash(parts), lines)


def _hash(parts: Sequence[str]) -> str:
    whole = hashlib.sha256()
    for part in parts:
        encoded = part.encode("utf-8", "surrogatepass")
        whole.update(b"%d:" % len(encoded) + encoded)
    return whole.hexdigest()


class _Storages:
    """Numbers storages in the order in which they are met, so that sharing shows and addresses do not."""

    def __init__(self) -> None:
        self._known: dict[int, int] = {}

    def number(self, storage: Any) -> int:
        return self._known.setdefault(storage._cdata, len(self._known))


def _graphs(module: fx.GraphModule, name: str) -> Iterator[tuple[str, fx.GraphModule]]:
    """The graph and the bodies that its operators call, by the path of their modules."""
    yield name, module
    for child_name, child in module.named_children():
        if isinstance(child, fx.GraphModule):
            yield from _graphs(child, f"{name}.{child_name}")


def _input_text(value: Any, storages: _Storages) -> str:
    if isinstance(value, torch.Tensor):
        return identity.tensor_text(value, storages.number)
    return identity.value_text(value, _no_node)


def _no_node(node: fx.Node) -> str:
    raise UncertainError(f"the node {node.name} among the inputs")


def _graph_texts(name: str, module: fx.GraphModule) -> Iterator[str]:
    yield f"graph {name} {_meta_text(module.meta)}"
    storages = _Storages()
    for node in module.graph.nodes:
        yield _node_text(node, storages)
        if node.op == "get_attr":
            yield _attribute_text(module, str(node.target))
        elif node.op == "call_module":
            raise UncertainError(f"the module {node.target} inside of the graph")


def _node_text(node: fx.Node, storages: _Storages) -> str:
    if "kernel_idx" in node.kwargs:
        raise UncertainError("a hand-written Triton kernel")
    target = node.target if isinstance(node.target, str) else identity.value_text(node.target, _name)
    parts = [
        node.op,
        node.name,
        target,
        identity.value_text(node.args, _name),
        identity.value_text(node.kwargs, _name),
        str(fx_compat.source_of(node)),
        _meta_text(node.meta),
        _origin_text(node),
    ]
    if node.op == "placeholder":
        parts.append(_input_text(node.meta.get("example_value"), storages))
    return " | ".join(parts)


def _name(node: fx.Node) -> str:
    return f"%{node.name}"


def _meta_text(meta: dict[str, Any]) -> str:
    """What passes may read of a node or a graph."""
    told = (key for key in sorted(meta, key=str) if key not in _TOLD_ELSEWHERE and key not in _OF_NO_CONSEQUENCE)
    return ", ".join(f"{key}={identity.value_text(meta[key], _name)}" for key in told)


def _origin_text(node: fx.Node) -> str:
    """The functions and modules that torch names a node after."""
    functions = [(name, _called(function)) for name, function in node.meta.get("source_fn_stack", ())]
    modules = [(path, _called(module)) for path, module in node.meta.get("nn_module_stack", {}).values()]
    return f"{functions} {modules}"


def _called(function: Any) -> str:
    return function if isinstance(function, str) else str(getattr(function, "__qualname__", type(function).__name__))


def _attribute_text(module: fx.GraphModule, path: str) -> str:
    value: Any = module
    for part in path.split("."):
        value = getattr(value, part)
    if isinstance(value, fx.GraphModule):
        return "a graph"
    if isinstance(value, torch.Tensor):
        return identity.constant_text(value)
    raise UncertainError(f"a constant of the type {type(value).__name__}")
