"""Which operators of the graph stand behind a kernel.

It knows nothing of kernels' text or findings.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from inductoscope.compiler.compat import inductor as compat
from inductoscope.compiler.lower.places import on_whose_behalf
from inductoscope.compiler.lower.recording import Call, Compilation

_PYTHON_OPERATORS = ("_operator", "operator")  # taking one of several results, and arithmetic on sizes


def op_name(node: torch.fx.Node) -> str | None:
    """The operator of a graph node without its overload (`aten.add`), or None for inputs and constants."""
    if node.op != "call_function":
        return None
    name = compat.qualified_name(node.target)
    if name is not None:
        return name
    if getattr(node.target, "__module__", None) in _PYTHON_OPERATORS:
        return None
    name = compat.higher_order_name(node) or getattr(node.target, "__name__", None) or str(node.target)
    # A pattern that is lowered as a whole stands in the graph as a function of Inductor's, which keeps the operator.
    replaced = compat.qualified_name(node.meta.get("original_aten"))
    return name if compat.higher_order_name(node) is not None or replaced is None else replaced


class Origins:
    """The graph nodes behind scheduler nodes, in the order of their graph."""

    def __init__(self, noted: Compilation) -> None:
        self._noted = noted
        self._order: dict[torch.fx.Node, int] = {}
        self._ordered: set[int] = set()

    def creator(self, leaf: Any) -> torch.fx.Node | None:
        """The graph node whose lowering made this operation; for a library call, the one it stands for."""
        made_by = self._noted.creators.get(leaf.get_name())
        return made_by or getattr(leaf.node, "origin_node", None)

    def of_call(self, call: Call) -> tuple[torch.fx.Node, ...]:
        """The graph nodes that went into a kernel.

        A library call stands for one node, though Inductor also lists those that its inputs came from.  A copy into
        the layout that a library wants has no origin of its own: it was made for the operator that wants it.  A buffer
        that a hand-written kernel writes lists that kernel among its origins, which is a kernel of its own.
        """
        creators = [creator for creator in map(self.creator, call.nodes) if creator is not None]
        if call.extern and creators:
            return (creators[0],)
        found = [node for leaf in call.nodes for node in getattr(leaf.node, "origins", ())]
        # The body of a branch or a loop lists what its inputs come from, in the graph around it.
        graphs = {creator.graph for creator in creators}
        own = [node for node in found if isinstance(node, torch.fx.Node) and (not graphs or node.graph in graphs)]
        operators = [node for node in own if _computes(node)]
        return self.sorted(operators or map(on_whose_behalf, creators))

    def sorted(self, nodes: Iterable[torch.fx.Node]) -> tuple[torch.fx.Node, ...]:
        """The nodes without repetition, in graph order."""
        return tuple(sorted(dict.fromkeys(nodes), key=self._position))

    def _position(self, node: torch.fx.Node) -> int:
        if id(node.graph) not in self._ordered:
            self._ordered.add(id(node.graph))
            offset = len(self._order)
            self._order.update({other: offset + at for at, other in enumerate(node.graph.nodes)})
        return self._order.get(node, len(self._order))


def _computes(node: torch.fx.Node) -> bool:
    return node.op == "call_function" and "kernel_idx" not in node.kwargs
