"""Which backward passes are lowered, although no call of the run has asked for one yet.

torch itself lowers a backward pass when the program first calls `backward()`.  Here it is lowered along with the
forward pass, so that its kernels are known without a training step; for a very large graph that can take longer than
all the rest of the run, and then only a program that trains is worth it.  It knows nothing of kernels.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from inductoscope.compiler.compat import inductor as compat
from inductoscope.compiler.lower.facts import Backward
from inductoscope.compiler.lower.findings import finding
from inductoscope.protocol.report import Finding, Place

MOST_OPERATORS = 1000
"""More than any but very deep models have; an operator costs in the order of 10 ms of processor time."""


@dataclass
class BackwardPasses:
    """The backward passes of one captured graph; `left_out` has the number of operators of each that is not lowered."""

    policy: Backward
    left_out: list[int] = field(default_factory=list)

    @contextlib.contextmanager
    def deciding(self) -> Iterator[None]:
        """Leave out what is too large for the duration of the block."""
        if self.policy is Backward.ALWAYS:
            yield
            return
        with compat.replaced(compat.COMPILE_BACKWARD, self._compile_backward):
            yield

    def _compile_backward(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def compile_fx_backward(
            graph: torch.fx.GraphModule, inputs: Sequence[Any], *args: Any, **kwargs: Any
        ) -> Callable[..., Any]:
            operators = sum(node.op == "call_function" for node in graph.graph.nodes)
            # With symbolic sizes torch itself lowers it at once, and what it learns of them becomes a guard.
            if operators <= MOST_OPERATORS or any(isinstance(value, torch.SymInt) for value in inputs):
                return original(graph, inputs, *args, **kwargs)
            self.left_out.append(operators)
            return _refuse

        return compile_fx_backward

    def findings(self, graph_id: str, place: Place) -> list[Finding]:
        """A finding for each backward pass that was left out, at the line where the compiled function begins."""
        return [
            finding(
                "backward-left-out",
                place,
                f"The backward pass of graph {graph_id} has {operators} operators and was not lowered, because these "
                f"calls do not train: above {MOST_OPERATORS} operators it is lowered only for a run of exercise().",
                hint="To see its kernels, define exercise(fn) in this file and call backward() on what fn returns.",
            )
            for operators in self.left_out
        ]


def _refuse(*_args: Any) -> None:
    """Stands where the compiled backward pass would; the graph is run op by op, so nothing calls it."""
    raise RuntimeError("this backward pass was not lowered")
