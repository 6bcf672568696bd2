"""A branch on a size or number that depends on data: state how it goes, or how the compiled program is to take it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from inductoscope.server.features.fixes.model import Proposal, changes, refused
from inductoscope.server.features.fixes.problem import Problem
from inductoscope.server.features.fixes.values import Kind

_INVERSE = {ast.Eq: "!=", ast.NotEq: "==", ast.Lt: ">=", ast.LtE: ">", ast.Gt: "<=", ast.GtE: "<"}
_USUAL = {ast.Eq: "false", ast.NotEq: "true", ast.Gt: "true", ast.GtE: "true"}
"""How a comparison goes for all but special sizes."""
_GUARDS = "torch.fx.experimental.symbolic_shapes"


def propose(problem: Problem) -> Iterator[Proposal]:
    """State the condition or its opposite, or give it a default."""
    statement, code = problem.statement, problem.code
    test = statement.test if isinstance(statement, ast.If) else _conditional(problem)
    if not problem.is_about("GB0170") or test is None or statement is None or not is_about_sizes(problem, test):
        return
    text = code.text(test)
    title = f"state how `{text}` goes"
    if not isinstance(test, ast.Compare):
        yield refused(f"Changes behaviour: {title}", "It is no single comparison: split the condition first.")
        return
    torch, imports = code.module_name("torch")
    if code.stands_alone(statement) and not code.is_elif(statement) and "\n" not in text:
        for stated in (text, _inverse(problem, test)):
            check = code.before(statement, f"{torch}._check({stated})")
            yield changes(f"state that {stated} (anything else raises an error)", check, *imports)
    usual = _USUAL.get(type(test.ops[0]))
    for name, value in (("guard_or_false", "false"), ("guard_or_true", "true")):
        if usual not in (None, value):
            continue
        called, needed = code.imported(_GUARDS, name)
        edit = code.replaced(test, f"{called}({text})")
        yield changes(f"take `{text}` as {value} when compiled", edit, *needed)


def is_about_sizes(problem: Problem, test: ast.expr) -> bool:
    """Whether a condition compares sizes or numbers and no tensors."""
    if isinstance(test, ast.UnaryOp):
        return is_about_sizes(problem, test.operand)
    if isinstance(test, ast.BoolOp):
        return all(is_about_sizes(problem, part) for part in test.values)
    if not isinstance(test, ast.Compare):
        return problem.values.kind(test) is Kind.NUMBER and not _reads(test)
    operands = [test.left, *test.comparators]
    kinds = [problem.values.kind(operand) for operand in operands]
    return all(kind is Kind.NUMBER for kind in kinds) and not any(map(_reads, operands))


def _reads(node: ast.expr) -> bool:
    """Whether the number is read from a tensor right here."""
    return any(
        isinstance(part, ast.Call)
        and (getattr(part.func, "attr", "") == "item" or getattr(part.func, "id", "") == "float")
        for part in ast.walk(node)
    )


def _conditional(problem: Problem) -> ast.expr | None:
    for node in problem.here(ast.IfExp):
        assert isinstance(node, ast.IfExp)
        return node.test
    return None


def _inverse(problem: Problem, test: ast.Compare) -> str:
    code = problem.code
    if len(test.ops) != 1 or type(test.ops[0]) not in _INVERSE:
        return f"not ({code.text(test)})"
    return f"{code.text(test.left)} {_INVERSE[type(test.ops[0])]} {code.text(test.comparators[0])}"
