"""A `with` that Dynamo cannot enter: while compiling, enter nothing instead."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from inductoscope.server.features.fixes.model import Edit, Proposal, changes, refused
from inductoscope.server.features.fixes.problem import Problem

_TITLE = "enter this only when not compiled"
_NEEDED = frozenset({"open", "io.open", "gzip.open", "tempfile.TemporaryDirectory", "tempfile.NamedTemporaryFile"})


def propose(problem: Problem) -> Iterator[Proposal]:
    """`contextlib.nullcontext()` while compiling."""
    statement = problem.statement
    if not isinstance(statement, ast.With):
        statement = _silencing(problem)
    if statement is None:
        return
    code = problem.code
    torch, imports = code.module_name("torch")
    contextlib, needed = code.module_name("contextlib")
    edits: list[Edit] = [*imports, *needed]
    changed = [item for item in statement.items if _is_meant(problem, item, statement)]
    for item in changed:
        reason = _obstacle(problem, item)
        if reason is not None:
            yield refused(f"Changes behaviour: {_TITLE}", reason)
            return
        text = f"{contextlib}.nullcontext() if {torch}.compiler.is_compiling() else {code.text(item.context_expr)}"
        edits.append(code.replaced(item.context_expr, text))
    edits += _filters(problem, statement, torch)
    if changed:
        yield changes(f"{_TITLE} (the compiled program runs the block without it)", *edits)


def _is_meant(problem: Problem, item: ast.withitem, statement: ast.With) -> bool:
    """Whether a break at the `with` can be about this item: the marked one, or where none is marked each call."""
    if "is_compiling" in ast.dump(item.context_expr):
        return False
    marked = problem.node
    parts = set(ast.walk(item.context_expr))
    others = [other for other in statement.items if marked in set(ast.walk(other.context_expr))]
    if marked in parts or not others:
        known = problem.code.dotted(item.context_expr.func) if isinstance(item.context_expr, ast.Call) else ""
        return not known.startswith(("torch.no_grad", "torch.enable_grad", "torch.autocast", "torch.amp"))
    return False


def _obstacle(problem: Problem, item: ast.withitem) -> str | None:
    code = problem.code
    called = item.context_expr
    name = code.dotted(called.func) if isinstance(called, ast.Call) else ""
    if name in _NEEDED:
        return f"The block needs what `{name}` gives: do this outside of the compiled function."
    if item.optional_vars is not None:
        return f"The block uses `{code.text(item.optional_vars)}`: do this outside of the compiled function."
    return None


def _silencing(problem: Problem) -> ast.With | None:
    """The `with warnings.catch_warnings()` around a filter that is set."""
    statement, code = problem.statement, problem.code
    if statement is None or not _is_filter(problem, statement):
        return None
    parent = code.parents.get(statement)
    if not isinstance(parent, ast.With):
        return None
    names = [code.dotted(item.context_expr.func) for item in parent.items if isinstance(item.context_expr, ast.Call)]
    return parent if "warnings.catch_warnings" in names else None


def _filters(problem: Problem, statement: ast.With, torch: str) -> list[Edit]:
    """The filters that the block sets go with it."""
    code = problem.code
    return [
        code.under(inner, f"if not {torch}.compiler.is_compiling():")
        for inner in statement.body
        if _is_filter(problem, inner) and code.stands_alone(inner) and code.can_be_indented(inner)
    ]


def _is_filter(problem: Problem, statement: ast.stmt) -> bool:
    call = statement.value if isinstance(statement, ast.Expr) else None
    names = ("warnings.simplefilter", "warnings.filterwarnings", "warnings.resetwarnings")
    return isinstance(call, ast.Call) and problem.code.dotted(call.func) in names
