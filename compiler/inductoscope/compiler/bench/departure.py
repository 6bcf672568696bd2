"""The first operator whose compiled result departs from the eager one, found by bisecting over the captured graphs.

A part of a graph up to an operator is compiled alone, on the very values that the program gave it, and compared as a
whole program is.  A shorter part can be fused in other ways than the whole: what departs only in the whole graph has no
first operator, and that is said.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import fx

from inductoscope.compiler.bench import numerics
from inductoscope.compiler.bench.subject import Program, Subject, eager_call, reseed
from inductoscope.compiler.bench.wide import widened
from inductoscope.protocol.bench import Departure
from inductoscope.protocol.report import Agreement, Numerics

PlaceOf = Callable[[fx.Node], "tuple[str, int] | None"]
"""File and line of the user's code behind a node."""

_CALLS = frozenset({"call_function", "call_method", "call_module"})


@dataclass(frozen=True)
class _Captured:
    """A graph as Dynamo made it, and the values of its first call."""

    module: fx.GraphModule
    values: tuple[Any, ...]


class Search:
    """Looks for the first departing operator of `subject`; `compile` compiles a graph as the program is compiled."""

    def __init__(self, subject: Subject, compile: Callable[[Program], Program], place_of: PlaceOf) -> None:
        self._subject = subject
        self._compile = compile
        self._place_of = place_of
        self._tried = 0

    def first(self, progress: Callable[[str], None]) -> Departure:
        """The operator, or why none can be named.  Never raises for what program or compiler do."""
        try:
            graphs = self._captured()
            for index, graph in enumerate(graphs):
                progress(f"looking for the first operator that departs, graph {index + 1} of {len(graphs)}")
                if self._differs(graph, None) is not None:
                    return replace(self._within(graph), graph=index, tried=self._tried)
        except Exception as error:
            why = f"the search ended with {type(error).__name__}: {str(error).partition(chr(10))[0]}"
            return Departure(tried=self._tried, note=why)
        note = "each captured graph agrees when it is compiled alone: the difference arises between graphs or calls"
        return Departure(tried=self._tried, note=note)

    def _captured(self) -> list[_Captured]:
        found: list[_Captured] = []

        def backend(module: fx.GraphModule, _: Sequence[Any]) -> Callable[..., Any]:
            place = len(found)
            found.append(_Captured(copy.deepcopy(module), ()))

            def run(*args: Any) -> Any:
                if not found[place].values:
                    found[place] = replace(found[place], values=_copied(args))
                return module(*args)

            return run

        torch.compiler.reset()
        call = eager_call(self._subject)
        args, kwargs = call.inputs
        reseed()
        torch.compile(call.program, backend=backend)(*args, **kwargs)
        return found

    def _within(self, graph: _Captured) -> Departure:
        """The first operator with a departing result, if every shorter part agrees and the part up to it does not."""
        nodes = [node for node in graph.module.graph.nodes if node.op in _CALLS]
        agrees, differs, worst = -1, len(nodes), None
        while differs - agrees > 1:
            middle = (agrees + differs) // 2
            found = self._differs(graph, nodes[middle].name)
            if found is None:
                agrees = middle
            else:
                differs, worst = middle, found
        if worst is None:
            return Departure(note="only the whole graph departs, none of its parts: fusing it makes the difference")
        node = nodes[differs]
        place = self._place_of(node)
        return Departure(
            node=node.name,
            operator=_target(node),
            file=place[0] if place else None,
            line=place[1] if place else None,
            max_rel_error=worst.max_rel_error,
        )

    def _differs(self, graph: _Captured, last: str | None) -> Numerics | None:
        """How the part up to the node `last` departs, or the whole graph; None where it does not."""
        part = graph.module if last is None else _up_to(graph.module, last)
        self._tried += 1
        torch.compiler.reset()
        with torch.no_grad():
            eager = numerics.snapshot(_run(part, graph.values))
            compiled = numerics.snapshot(_run(self._compile(copy.deepcopy(part)), graph.values))
            found = numerics.compare(eager, compiled, _in_float64(part, graph.values))
        return found if found.agreement is Agreement.DIFFERS else None


def _up_to(module: fx.GraphModule, last: str) -> fx.GraphModule:
    """The graph up to the node `last`, which alone it returns."""
    part = copy.deepcopy(module)
    nodes = list(part.graph.nodes)
    end = next(index for index, node in enumerate(nodes) if node.name == last)
    for node in reversed(nodes[end + 1 :]):
        part.graph.erase_node(node)
    part.graph.output((nodes[end],))
    part.recompile()
    return part


def _run(program: Program, values: tuple[Any, ...]) -> object:
    reseed()
    return program(*_copied(values))


def _in_float64(part: fx.GraphModule, values: tuple[Any, ...]) -> numerics.Values | None:
    try:
        return numerics.snapshot(_run(copy.deepcopy(part).double(), tuple(widened(value) for value in values)))
    except Exception:  # a dtype in the graph, an operator without double precision: no reference then
        return None


def _copied(values: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(value.detach().clone() if isinstance(value, torch.Tensor) else value for value in values)


def _target(node: fx.Node) -> str:
    return node.target if isinstance(node.target, str) else getattr(node.target, "__name__", str(node.target))
