"""A size that changes from call to call makes Dynamo compile again: say at the start that it does."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from inductoscope.server.features.fixes import compiling
from inductoscope.server.features.fixes.model import Edit, Proposal, refused, same
from inductoscope.server.features.fixes.problem import Problem

_SIZE = re.compile(r"tensor '(?P<name>\w+)' size mismatch at index (?P<dim>\d+)")
_TITLE = "Compile for changing sizes and numbers from the start (dynamic=True)"


def propose(problem: Problem) -> Iterator[Proposal]:
    """Mark the dimension where the compiled function is called, or compile with `dynamic=True`."""
    size, function = _SIZE.search(problem.finding.message), problem.function
    if function is None or "size mismatch" not in (problem.finding.guard_family or problem.finding.message):
        return
    found = compiling.sites(problem.code, function)
    if size is not None and any(site.dynamic is None for site in found):
        yield from _marked(problem, found, size["name"], int(size["dim"]))
    yield from made_dynamic(problem)


def made_dynamic(problem: Problem) -> Iterator[Proposal]:
    """`dynamic=True` at each use of torch.compile on the function."""
    code, function = problem.code, problem.function
    found = compiling.sites(code, function) if function else ()
    if not found:
        reason = "torch.compile is not applied to it in this file: pass dynamic=True where it is."
        yield refused(_TITLE, reason)
    elif any(site.is_open for site in found):
        yield refused(_TITLE, "torch.compile is given its options from elsewhere: put dynamic=True among those.")
    elif not all(_is_true(site.dynamic) for site in found):
        yield same(_TITLE, *(site.made_dynamic(code) for site in found))


def _is_true(keyword: ast.keyword | None) -> bool:
    return keyword is not None and isinstance(keyword.value, ast.Constant) and keyword.value.value is True


def _marked(problem: Problem, found: tuple[compiling.Site, ...], parameter: str, dim: int) -> Iterator[Proposal]:
    code, function = problem.code, problem.function
    assert function is not None
    torch, imports = code.module_name("torch")
    edits: list[Edit] = []
    for call in (call for site in found if site.name for call in compiling.calls_of(code, site.name, function)):
        passed = compiling.argument(code, call, function, parameter)
        statement = code.statement_of(call)
        if not isinstance(passed, ast.Name) or statement is None or not code.stands_alone(statement):
            return
        line = f"{torch}._dynamo.maybe_mark_dynamic({passed.id}, {dim})"
        simple = isinstance(statement, ast.Expr | ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Return)
        if not simple or any(code.text(item) == line for item in code.siblings(statement)):
            return
        edits.append(code.before(statement, line))
    if edits:
        yield same(f"Mark dimension {dim} of `{parameter}` as changing where it is called", *edits, *imports)
