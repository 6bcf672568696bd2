"""`torch._dynamo.graph_break()` that somebody wrote: outside of Dynamo it does nothing, so it can go."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from inductoscope.server.features.fixes.model import Proposal, refused, same
from inductoscope.server.features.fixes.problem import Problem

_NAMES = ("torch._dynamo.graph_break", "torch._dynamo.decorators.graph_break")
_TITLE = "Remove the graph break that is asked for here"


def propose(problem: Problem) -> Iterator[Proposal]:
    """Remove the statement."""
    statement, code = problem.statement, problem.code
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
        return
    if code.dotted(statement.value.func) not in _NAMES:
        return
    if code.stands_alone(statement):
        yield same(_TITLE, code.without(statement))
    else:
        yield refused(_TITLE, "Another statement shares its line: give it a line of its own first.")
