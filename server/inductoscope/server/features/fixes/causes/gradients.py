"""Writes of `requires_grad` in compiled code: for the model's own parameters they belong into `__init__`."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from inductoscope.server.features.fixes.model import Edit, Proposal, changes, refused
from inductoscope.server.features.fixes.problem import Problem
from inductoscope.server.scanning.definitions import Function

_TITLE = "set requires_grad once, at the end of `__init__`"


def propose(problem: Problem) -> Iterator[Proposal]:
    """Move the statement, or the whole loop that does nothing else, to the end of `__init__`."""
    code = problem.code
    statement = problem.statement
    if statement is None or not _writes(statement):
        return
    moved = _whole(problem, statement)
    reason = _obstacle(problem, moved)
    if reason is not None:
        yield refused(f"Changes behaviour: {_TITLE}", reason)
        return
    constructor = code.constructor_of(moved)
    assert constructor is not None
    yield changes(_TITLE, code.cut(moved), _added(problem, constructor, moved))


def _added(problem: Problem, constructor: Function, moved: ast.stmt) -> Edit:
    code = problem.code
    last = constructor.body[-1]
    (first, _), (end, _) = code.start(moved), code.end(moved)
    indent = len(code.indent(moved))
    return code.after(last, *(code.line(number)[indent:] for number in range(first, end + 1)))


def _writes(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Assign):
        return any(isinstance(item, ast.Attribute) and item.attr == "requires_grad" for item in statement.targets)
    call = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "requires_grad_"


def _whole(problem: Problem, statement: ast.stmt) -> ast.stmt:
    """The outermost loop around a statement that does nothing but repeat it."""
    for parent in problem.code.ancestors(statement):
        if not isinstance(parent, ast.For) or parent.body != [statement] or parent.orelse:
            break
        statement = parent
    return statement


def _obstacle(problem: Problem, moved: ast.stmt) -> str | None:
    code, function = problem.code, problem.function
    free = _free_names(moved)
    if "self" not in free or free - {"self"} - set(code.module.names) - {"True", "False"}:
        foreign = ", ".join(f"`{name}`" for name in sorted(free - {"self"})) or "It"
        return f"{foreign} belongs to this call: call requires_grad_() before the compiled function is called."
    constructor = code.constructor_of(moved)
    if function is None or constructor is None:
        return "The class has no `__init__` of its own, ending with a plain statement, to move it to."
    if function is constructor or moved not in function.body:
        return "It happens only under a condition or in a loop that does more: move it out by hand."
    if not code.stands_alone(moved) or not code.can_be_indented(moved):
        return "Another statement shares its lines: give it lines of its own first."
    return None


def _free_names(moved: ast.stmt) -> set[str]:
    names: Sequence[ast.Name] = [node for node in ast.walk(moved) if isinstance(node, ast.Name)]
    bound = {node.id for node in names if isinstance(node.ctx, ast.Store)}
    return {node.id for node in names if isinstance(node.ctx, ast.Load)} - bound
