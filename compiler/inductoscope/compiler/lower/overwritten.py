"""A backward pass that cannot be traced, because the program changes in place a value that it needs.

Autograd says so while AOTAutograd traces the backward pass, which torch does at the first call whether or not the
program ever trains.  Its text names the function that made the value; the line is found in the captured graph.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Iterator

import torch

from inductoscope.compiler.lower.findings import callers, finding
from inductoscope.compiler.lower.places import Places, stack_of
from inductoscope.protocol.report import Finding, Place

_SAID = re.compile(
    r"needed for gradient computation has been modified by an inplace operation: \[[\w.]+ \[(?P<shape>[\d, ]*)\]\]"
    r"(?:, which is output \d+ of (?P<function>\w+?)(?:Backward\d*)?,)?"
)
_NAMES = ("iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "ipow", "iand", "ior", "ixor")
_OPERATORS = {vars(operator)[name] for name in _NAMES}
_HINT = (
    "Write the line without changing the tensor (`out = out + x` for `out += x`), or make the calls under "
    "torch.no_grad() where no gradients are wanted."
)


def overwritten_finding(error: BaseException, graph: torch.fx.Graph, places: Places, begins: Place) -> Finding | None:
    """The `compile-error` at the line that changes the value, or where the graph begins; None for any other error."""
    said = _SAID.search(str(error))
    if said is None:
        return None
    writers = [node for node in graph.nodes if _writes(node)]
    matching = [node for node in writers if said["function"] and _was_made_by(node, said["function"])]
    found = (matching or writers) if len(matching or writers) == 1 else matching
    value = f"a tensor of shape [{said['shape']}]"
    if said["function"]:
        value += f" that {said['function']} made"
    stack = stack_of(found[-1]) if found else None
    place = places.in_stack(stack)
    where = "it is changed in place here" if place is not None else "it is changed in place afterwards"
    message = (
        f"The backward pass cannot be compiled: it needs {value}, and {where}. "
        "torch.compile traces it at the first call because gradients are on; without compiling, backward() would raise "
        "the same."
    )
    return finding("compile-error", place or begins, message, related=callers(places.chain(stack)), hint=_HINT)


def _writes(node: torch.fx.Node) -> bool:
    """Whether a node of a captured graph changes its first argument."""
    if node.op == "call_method":
        name = str(node.target)
        return name.endswith("_") and not name.endswith("__")
    if node.op != "call_function":
        return False
    return node.target in _OPERATORS or node.kwargs.get("inplace") is True


def _was_made_by(node: torch.fx.Node, function: str) -> bool:
    """Whether what a node changes came out of an operator that autograd calls `function`, or is a view of that."""
    return any(_plain(made) == _plain(function) for made in _makers(node))


def _makers(node: torch.fx.Node) -> Iterator[str]:
    """Names of the operators that made a node's first argument, nearest first."""
    while node.args and isinstance(node.args[0], torch.fx.Node):
        node = node.args[0]
        yield str(node.target) if node.op == "call_method" else getattr(node.target, "__name__", str(node.target))


def _plain(name: str) -> str:
    return name.replace("_", "").lower()
