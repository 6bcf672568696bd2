"""A number read from a tensor (`.item()`, `float(t)`, `math.sqrt(t)`): keep the tensor where no number is needed."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from inductoscope.server.features.fixes.model import Proposal, changes, refused, words
from inductoscope.server.features.fixes.problem import Problem
from inductoscope.server.features.fixes.values import Kind, bound_by

_TITLE = "keep the tensor instead of reading a number (no gradient flows through it, as before; its type counts)"
_MATH = words(
    "sqrt exp log log2 log10 log1p expm1 sin cos tan asin acos atan sinh cosh tanh erf",
)
_SIZES = words(
    "range view reshape expand repeat zeros ones empty full arange split chunk narrow roll topk pad",
)
_PYTHON = words(
    "str repr format print hash int float bool round divmod isinstance",
)


def propose(problem: Problem) -> Iterator[Proposal]:
    """The tensor in place of the number, or why it has to be a number here."""
    code = problem.code
    for call in problem.calls():
        math = _math(problem, call)
        if math is not None:
            torch, imports = code.module_name("torch")
            title = f"use torch.{math} (computes in the tensor's type)"
            yield changes(title, code.replaced(call.func, f"{torch}.{math}"), *imports)
            return
        kept = _kept(problem, call)
        if kept is None:
            continue
        reason = _needs_number(problem, call)
        if reason is not None:
            yield refused(f"Changes behaviour: {_TITLE}", reason)
        else:
            yield from _rewritten(problem, call, kept)
        return


def _kept(problem: Problem, call: ast.Call) -> str | None:
    """The tensor whose number the call reads, detached as a number is."""
    code = problem.code
    if isinstance(call.func, ast.Attribute) and call.func.attr == "item" and not call.args and not call.keywords:
        return _detached(code.text(call.func.value), call.func.value)
    if code.dotted(call.func) == "float" and len(call.args) == 1 and not isinstance(call.args[0], ast.Starred):
        inner = call.args[0]
        loose = not isinstance(inner, ast.Call | ast.Name | ast.Attribute | ast.Subscript)
        text = f"({code.text(inner)})" if loose else code.text(inner)
        read = isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute) and inner.func.attr == "item"
        return None if read else _detached(text, inner)
    return None


def _detached(text: str, tensor: ast.expr) -> str:
    """The tensor apart from its gradient, as a number is."""
    calls = [node.func for node in ast.walk(tensor) if isinstance(node, ast.Call)]
    is_detached = any(isinstance(called, ast.Attribute) and called.attr == "detach" for called in calls)
    return text if is_detached and isinstance(tensor, ast.Call) else f"{text}.detach()"


def _math(problem: Problem, call: ast.Call) -> str | None:
    module, _, name = problem.code.dotted(call.func).partition(".")
    fits = module == "math" and name in _MATH and len(call.args) == 1
    return name if fits and not _reads(call.args[0]) else None


def _reads(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "item"


def _rewritten(problem: Problem, call: ast.Call, kept: str) -> Iterator[Proposal]:
    """`max(t.item(), 1e-3)` works with a tensor as well, for Dynamo knows `max` and `min` of them."""
    yield changes(_TITLE, problem.code.replaced(call, kept))


def _needs_number(problem: Problem, call: ast.Call) -> str | None:
    """Why what is read has to be a number, or None where a tensor of one element does the same."""
    waiting: list[ast.expr] = [call]
    seen: set[ast.expr] = set()
    while waiting:
        place = waiting.pop()
        reason = _use(problem, place)
        if reason is not None:
            return reason
        later = [use for use in _later_uses(problem, place) if use not in seen]
        seen.update(later)
        waiting += later
    return None


def _later_uses(problem: Problem, place: ast.expr) -> Iterator[ast.expr]:
    """The reads of the names that the number, or what is computed from it alone, is put into."""
    function = problem.function
    for outer in problem.code.ancestors(place):
        if isinstance(outer, ast.expr) and problem.values.is_tensor(outer):
            return
        if isinstance(outer, ast.stmt):
            names = bound_by(outer) if isinstance(outer, ast.Assign | ast.AnnAssign | ast.AugAssign) else set()
            for node in ast.walk(function) if function and names else ():
                if isinstance(node, ast.Name) and node.id in names and isinstance(node.ctx, ast.Load):
                    yield node
            return


def _use(problem: Problem, node: ast.expr) -> str | None:
    inner: ast.AST = node
    for outer in problem.code.ancestors(node):
        if isinstance(outer, ast.stmt):
            return _in_statement(outer, inner)
        reason = _in_expression(problem, outer, inner)
        if reason is not None:
            return reason
        if _makes_tensor(problem, outer, inner):
            return None
        inner = outer
    return None


def _in_statement(outer: ast.stmt, inner: ast.AST) -> str | None:
    match outer:
        case ast.If() | ast.While() | ast.Assert() if inner is outer.test:
            return f"The number decides a branch in line {outer.lineno}: rewrite the branch."
        case ast.Return():
            return "The number is returned to the caller, who may need a number."
        case ast.Assign() | ast.AugAssign() if _stores_outside(outer):
            return f"The number is kept outside of the function in line {outer.lineno}."
    return None


def _in_expression(problem: Problem, outer: ast.AST, inner: ast.AST) -> str | None:
    line = getattr(inner, "lineno", 0)
    match outer:
        case ast.IfExp() if inner is outer.test:
            return f"The number decides a branch in line {line}: rewrite the branch."
        case ast.Subscript() if inner is outer.slice:
            return f"The number is an index in line {line}."
        case ast.Slice():
            return f"The number is a bound of a slice in line {line}."
        case ast.Tuple() if isinstance(problem.code.parents.get(outer), ast.Return):
            return None
        case ast.List() | ast.Tuple() | ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            return f"The number is gathered with others in line {line}."
        case ast.JoinedStr() | ast.FormattedValue() | ast.Dict() | ast.Set():
            return f"The number is used as a Python value in line {line}."
        case ast.Call() if inner is not outer.func:
            return _called(problem, outer, inner)
    return None


def _makes_tensor(problem: Problem, node: ast.AST, number: ast.AST) -> bool:
    """Whether the number goes into a tensor here: what becomes of that is no longer the number's business."""
    if not isinstance(node, ast.BinOp):
        return False
    other = node.right if number is node.left else node.left
    return problem.values.kind(other) in (Kind.TENSOR, Kind.UNKNOWN)


def _called(problem: Problem, call: ast.Call, argument: ast.AST) -> str | None:
    name = problem.code.dotted(call.func)
    last = call.func.attr if isinstance(call.func, ast.Attribute) else name.rpartition(".")[2]
    if last in _SIZES:
        return f"`{last}` in line {call.lineno} needs a number, for a size."
    if name in _PYTHON or last in ("append", "add", "format", "log", "info"):
        return f"`{last}` in line {call.lineno} needs a number."
    return None


def _stores_outside(statement: ast.Assign | ast.AugAssign) -> bool:
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    return any(not isinstance(target, ast.Name) for target in targets)
