"""An integer attribute of a module that changes at each call is compiled for anew each time: keep it in a tensor."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from inductoscope.server.features.fixes.model import Proposal, changes, refused
from inductoscope.server.features.fixes.problem import Problem
from inductoscope.server.features.fixes.values import is_own

_FAMILY = re.compile(r"self\.(?P<name>\w+) == N")


def propose(problem: Problem) -> Iterator[Proposal]:
    """A buffer in place of the number."""
    match = _FAMILY.fullmatch(problem.finding.guard_family or "")
    owner = problem.code.class_of(problem.statement) if problem.statement else None
    if match is None or owner is None:
        return
    name, code = match["name"], problem.code
    title = f"keep `self.{name}` in a tensor (a buffer; reading it as a number waits for the device)"
    made = [item for item in _uses(owner, name) if _is_constant_assignment(code.parents.get(item))]
    if any(_is_fraction(code.parents.get(item)) for item in _uses(owner, name)):
        return  # a fraction is compiled for again once, and then for any value
    reason = _obstacle(problem, owner, name, made)
    if reason is not None:
        yield refused(f"Changes behaviour: {title}", reason)
        return
    statement = code.parents[made[0]]
    assert isinstance(statement, ast.Assign)
    torch, imports = code.module_name("torch")
    value = code.text(statement.value)
    buffer = f'self.register_buffer("{name}", {torch}.tensor({value}), persistent=False)'
    yield changes(title, code.replaced(statement, buffer), *imports)


def _uses(owner: ast.ClassDef, name: str) -> Iterator[ast.Attribute]:
    for node in ast.walk(owner):
        if isinstance(node, ast.Attribute) and is_own(node, name):
            yield node


def _is_constant_assignment(statement: ast.AST | None) -> bool:
    return (
        isinstance(statement, ast.Assign)
        and len(statement.targets) == 1
        and isinstance(statement.value, ast.Constant)
        and type(statement.value.value) is int
    )


def _is_fraction(statement: ast.AST | None) -> bool:
    value = getattr(statement, "value", None)
    return isinstance(value, ast.Constant) and isinstance(value.value, float)


def _obstacle(problem: Problem, owner: ast.ClassDef, name: str, made: list[ast.Attribute]) -> str | None:
    code = problem.code
    constructor = code.module.method(owner, "__init__")
    if constructor is None or len(made) != 1 or code.function_of(made[0]) is not constructor:
        return f"`self.{name}` is not set to a plain number once, in `__init__` of this file."
    if not _follows_super(problem, made[0]):
        return f"`self.{name}` is set before `super().__init__()`, when no buffer can be registered yet."
    for use in _uses(owner, name):
        for parent in code.ancestors(use):
            if isinstance(parent, ast.If | ast.While | ast.IfExp | ast.Assert) and use in set(ast.walk(parent.test)):
                return (
                    f"`self.{name}` decides a branch in line {use.lineno}, which a tensor cannot without a graph break."
                )
            if isinstance(parent, ast.Slice) or (
                isinstance(parent, ast.Subscript) and use in set(ast.walk(parent.slice))
            ):
                return f"`self.{name}` is an index or a bound of a slice in line {use.lineno}."
            if isinstance(parent, ast.JoinedStr | ast.Dict):
                return f"`self.{name}` is used as a Python number in line {use.lineno}."
            if isinstance(parent, ast.stmt):
                break
    return None


def _follows_super(problem: Problem, made: ast.Attribute) -> bool:
    constructor = problem.code.function_of(made)
    calls = (node for node in ast.walk(constructor) if isinstance(node, ast.Call)) if constructor else ()
    return any(getattr(call.func, "attr", "") == "__init__" and call.lineno < made.lineno for call in calls)
