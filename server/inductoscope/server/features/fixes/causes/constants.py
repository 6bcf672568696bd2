"""A call into a library that Dynamo does not trace, with arguments that never change: make it once, at import."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from inductoscope.server.features.fixes.model import Proposal, changes, refused
from inductoscope.server.features.fixes.problem import Problem

_TITLE = "make this call once, when the file is imported"
_CHANGING = (
    "random",
    "uuid",
    "time",
    "datetime",
    "secrets",
    "numpy",
    "torch",
    "threading",
    "logging",
    "warnings",
    "copy",
)


def propose(problem: Problem) -> Iterator[Proposal]:
    """The call as a constant of the module."""
    code, statement = problem.code, problem.statement
    for call in problem.calls():
        root = code.dotted(call.func).partition(".")[0]
        imported = code.is_imported(_root(call.func))
        if not imported or root in _CHANGING or isinstance(statement, ast.Expr) or code.function_of(call) is None:
            continue
        if not all(map(_never_changes, [*call.args, *(item.value for item in call.keywords)])):
            reason = (
                f"`{code.text(call.func)}` gets values of this call. Call it before the compiled function, or register "
                "it with torch.library.custom_op if it works on tensors."
            )
            yield refused(f"Changes behaviour: {_TITLE}", reason)
            return
        name = code.fresh(f"_{code.dotted(call.func).replace('.', '_')}".upper())
        at = code.at_top(f"{name} = {code.text(call)}")
        if at is not None:
            yield changes(_TITLE, at, code.replaced(call, name))
        return


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _never_changes(node: ast.expr) -> bool:
    return all(not isinstance(part, ast.Name | ast.Call | ast.Attribute | ast.Starred) for part in ast.walk(node))
