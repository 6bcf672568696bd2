"""The nodes of an FX graph as the report tells them, with the user's line of each.

Knows neither when a graph is seen nor what becomes of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from torch import fx

from inductoscope.compiler.compat import fx as compat
from inductoscope.compiler.layouts import devices_of, layouts_of, several_text, text_of
from inductoscope.protocol.report import FxGraph, FxNode, Phase, Place, Stage
from inductoscope.protocol.torch_texts.naming import plain

MOST_TEXT = 1000
"""Characters of a node's arguments that are written out; only literal data and results of large graphs are longer."""

_CALLS = frozenset({"call_function", "call_method", "call_module"})

PlaceOf = Callable[[fx.Node], "Place | None"]
SourceOf = Callable[[fx.Node], "str | None"]


@dataclass
class Allowance:
    """How many more nodes may be told; a graph that does not fit is told without its nodes."""

    nodes: int

    def takes(self, count: int) -> bool:
        """Whether `count` more fit; if so they are used up."""
        if count > self.nodes:
            return False
        self.nodes -= count
        return True


@dataclass(frozen=True)
class Seen:
    """Which graph this is."""

    graph: str
    stage: Stage
    phase: Phase


@dataclass(frozen=True)
class Origins:
    """Where a node comes from: the line of an operator, and what the program calls an input."""

    place_of: PlaceOf
    source_of: SourceOf


def told(module: fx.GraphModule, seen: Seen, origins: Origins, allowance: Allowance) -> Iterator[FxGraph]:
    """The graph, and after it the bodies that its operators call (branches of `cond`, checkpointed regions)."""
    for body, inner in _bodies(module, None):
        nodes = tuple(inner.graph.nodes)
        ops = sum(node.op in _CALLS for node in nodes)
        told_nodes = tuple(_node(node, origins) for node in nodes) if allowance.takes(len(nodes)) else None
        left_out = len(nodes) if told_nodes is None else 0
        yield FxGraph(seen.graph, seen.stage, seen.phase, ops, told_nodes or (), body, left_out)


def left_out(graphs: Iterable[FxGraph]) -> Iterator[str]:
    """A sentence about the graphs that are told without their nodes, if there are any."""
    left = [f"{one.graph} {one.stage.value} {one.phase.value} ({one.left_out} nodes)" for one in graphs if one.left_out]
    if left:
        yield f"Too large to be listed node by node: {', '.join(left)}."


def _bodies(module: fx.GraphModule, name: str | None) -> Iterator[tuple[str | None, fx.GraphModule]]:
    yield name, module
    for child_name, child in module.named_children():
        if isinstance(child, fx.GraphModule):
            yield from _bodies(child, child_name if name is None else f"{name}.{child_name}")


def source_of_input(node: fx.Node) -> str | None:
    """What the program calls an input of a captured graph: `self.weight`, `x`."""
    source = compat.source_of(node) if node.op == "placeholder" else None
    return plain(source) if source is not None else None


def sources_of_inputs(module: fx.GraphModule) -> tuple[str | None, ...]:
    """The same for each input, in order."""
    return tuple(source_of_input(node) for node in module.graph.nodes if node.op == "placeholder")


def _node(node: fx.Node, origins: Origins) -> FxNode:
    returns = node.op == "output"
    text, device = (None, None) if returns else described(node)
    place = None if returns else origins.place_of(node)
    return FxNode(
        name=node.name,
        op=node.op,
        target=compat.target_text(node),
        args=compat.arguments_text(node, MOST_TEXT),
        text=text,
        device=device,
        file=place.file if place else None,
        line=place.line if place else None,
        source=origins.source_of(node),
    )


def described(node: fx.Node) -> tuple[str | None, str | None]:
    """Dtype and sizes of what a node makes, and its device; nothing where that is no tensor."""
    value = compat.value_of(node)
    if isinstance(value, list | tuple):
        value = [one for one in value if one is not None]  # outputs that nobody asked for
    layouts = layouts_of(value)
    if not layouts:
        return None, None
    text = several_text(layouts) if isinstance(value, list) else text_of(layouts[0])
    return text, devices_of(layouts)
