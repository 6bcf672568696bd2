"""FX graphs as Python code, one line a node, each with the line of the program that it comes from.

In a captured graph inputs are called what the program calls them, since Dynamo's names for them repeat the whole path
in other words; later graphs keep the short names that kernels and wrappers use.  Knows neither terminals nor editors.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from inductoscope.protocol.report import FxGraph, FxNode, Phase, Stage

_STAGES = {
    Stage.CAPTURED: "as Dynamo captured it",
    Stage.JOINT: "forward and backward in one, as AOTAutograd traced them",
    Stage.PARTITIONED: "before Inductor's passes",
    Stage.LOWERED: "after Inductor's passes",
}
_BINARY = {
    "operator.add": "+",
    "operator.sub": "-",
    "operator.mul": "*",
    "operator.truediv": "/",
    "operator.floordiv": "//",
    "operator.mod": "%",
    "operator.pow": "**",
    "operator.matmul": "@",
    "operator.lt": "<",
    "operator.le": "<=",
    "operator.gt": ">",
    "operator.ge": ">=",
    "operator.eq": "==",
    "operator.ne": "!=",
}
_PLAIN = re.compile(r"[\w.+\-\[\]]+")  # a name, an attribute or a number
_WORD = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True)
class CodeLine:
    """A line of code and where in the program it comes from."""

    text: str
    file: str | None = None
    line: int | None = None


def title(graph: FxGraph) -> str:
    """`graph 0/0, backward, after Inductor's passes`."""
    phase = ", backward" if graph.phase is Phase.BACKWARD else ""
    body = f", body {graph.body}" if graph.body else ""
    return f"graph {graph.graph}{phase}{body}, {_STAGES[graph.stage]}"


def code(graph: FxGraph) -> Iterator[CodeLine]:
    """The graph as a function; a graph that is told without its nodes is one comment."""
    if not graph.nodes:
        yield CodeLine(f"# {graph.left_out} nodes: too large to be listed")
        return
    several = len({node.device for node in graph.nodes if node.device}) > 1
    inputs = [node for node in graph.nodes if node.op == "placeholder"]
    yield CodeLine("def forward(" if inputs else "def forward():")
    for node in inputs:
        source = f"  # {node.source}" if node.source and node.source != node.name else ""
        yield CodeLine(f"    {node.name}{_annotation(node, several)},{source}")
    if inputs:
        yield CodeLine("):")
    called = _called(graph) if graph.stage is Stage.CAPTURED else {}
    for node in graph.nodes:
        if node.op != "placeholder":
            renamed = replace(node, args=_WORD.sub(lambda word: called.get(word[0], word[0]), node.args))
            yield CodeLine(f"    {_statement(renamed, several)}", node.file, node.line)


def _called(graph: FxGraph) -> dict[str, str]:
    """What the program calls the inputs, by their names, where no other node has that name."""
    taken = {node.name for node in graph.nodes}
    inputs = [node for node in graph.nodes if node.op == "placeholder"]
    return {
        node.name: node.source
        for node in inputs
        if node.source and not any(word in taken for word in _WORD.findall(node.source)[:1])
    }


def operator(node: FxNode) -> str:
    """The short name of what a node calls: `aten.add`, `linear`, `view`."""
    if node.target.startswith("torch.ops."):
        return ".".join(node.target.split(".")[2:4])
    return node.target.rpartition(".")[2]


def is_call(node: FxNode) -> bool:
    """Whether a node is an operator, and not what only takes one of several results."""
    return node.op in ("call_function", "call_method", "call_module") and node.target != "operator.getitem"


def _annotation(node: FxNode, with_device: bool) -> str:
    if node.text is None:
        return ""
    return f': "{node.text} {node.device}"' if with_device else f': "{node.text}"'


def _statement(node: FxNode, with_device: bool) -> str:
    if node.op == "output":
        return f"return {node.args}"
    return f"{node.name}{_annotation(node, with_device)} = {_expression(node)}"


def _expression(node: FxNode) -> str:
    first, _, rest = node.args.partition(", ")
    if node.op == "get_attr":
        return f"self.{node.target}"
    if node.op == "call_module":
        return f"self.{node.target}({node.args})"
    if node.op == "call_method":
        return f"{first}.{node.target}({rest})"
    if _PLAIN.fullmatch(first) and _PLAIN.fullmatch(rest):
        if node.target == "operator.getitem":
            return f"{first}[{rest}]"
        if node.target in _BINARY:
            return f"{first} {_BINARY[node.target]} {rest}"
    return f"{node.target}({node.args})"
