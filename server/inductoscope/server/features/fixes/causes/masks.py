"""Selecting elements by a mask gives a tensor whose size depends on data: keep the size, and blank the rest out."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from inductoscope.server.features.fixes.model import Proposal, changes, refused
from inductoscope.server.features.fixes.problem import Problem, own_parts
from inductoscope.server.features.fixes.values import bound_by, parameters

_SUM = "add up over all elements, the others as 0 (rounding may differ)"
_SET = "compute for all elements and choose with torch.where (a new tensor, not in place)"
_CHOOSE = "Changes behaviour: keep all elements and choose with torch.where"
_UNKNOWN = (
    "How many elements are selected depends on data, and what is done with them needs their number. Only a sum or "
    "mean, or an assignment under the same mask, can be written with torch.where."
)


def propose(problem: Problem) -> Iterator[Proposal]:
    """torch.where instead of the selection."""
    if not problem.is_about("GB0036"):
        return
    for node in problem.here(ast.Subscript, ast.Call):
        selected = _selection(problem, node)
        if selected is None:
            if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load) and problem.finding.id is not None:
                yield refused(_CHOOSE, _UNKNOWN)
                return
            continue
        assert isinstance(node, ast.expr)
        whole, mask = selected
        found = _reduced(problem, node, whole, mask) or _assigned(problem, mask)
        if found is not None:
            yield found
        else:
            yield refused(_CHOOSE, _UNKNOWN)
        return


def _selection(problem: Problem, node: ast.AST) -> tuple[ast.expr, ast.expr] | None:
    """The tensor and the mask of `x[mask]` or `torch.masked_select(x, mask)`."""
    if (
        isinstance(node, ast.Subscript)
        and isinstance(node.ctx, ast.Load)
        and is_mask_of(problem, node.slice, node.value)
    ):
        return node.value, node.slice
    if isinstance(node, ast.Call) and problem.code.dotted(node.func) == "torch.masked_select" and len(node.args) == 2:
        return node.args[0], node.args[1]
    return None


def is_mask_of(problem: Problem, mask: ast.expr, whole: ast.expr) -> bool:
    """Whether a mask was certainly made from the tensor element by element, so that it has its shape."""
    mask = _meaning(problem, mask)
    if isinstance(mask, ast.Compare) and len(mask.ops) == 1:
        left, right = mask.left, mask.comparators[0]
        same = ast.dump(left) == ast.dump(whole) and isinstance(right, ast.Constant | ast.UnaryOp)
        return same or (ast.dump(right) == ast.dump(whole) and isinstance(left, ast.Constant | ast.UnaryOp))
    if isinstance(mask, ast.Call) and problem.code.dotted(mask.func) in (
        "torch.isnan",
        "torch.isfinite",
        "torch.isinf",
    ):
        return len(mask.args) == 1 and ast.dump(mask.args[0]) == ast.dump(whole)
    if isinstance(mask, ast.UnaryOp) and isinstance(mask.op, ast.Invert):
        return is_mask_of(problem, mask.operand, whole)
    return False


def _meaning(problem: Problem, mask: ast.expr) -> ast.expr:
    """What a name that is set once holds."""
    function = problem.function
    if not isinstance(mask, ast.Name) or function is None:
        return mask
    bound = [node for node in ast.walk(function) if isinstance(node, ast.stmt) and mask.id in bound_by(node)]
    once = len(bound) == 1 and isinstance(bound[0], ast.Assign) and mask.id not in parameters(function)
    return bound[0].value if once and isinstance(bound[0], ast.Assign) else mask


def _reduced(problem: Problem, node: ast.expr, whole: ast.expr, mask: ast.expr) -> Proposal | None:
    code = problem.code
    method = code.parents.get(node)
    call = code.parents.get(method) if isinstance(method, ast.Attribute) else None
    if not isinstance(method, ast.Attribute) or not isinstance(call, ast.Call) or call.args or call.keywords:
        return None
    torch, imports = code.module_name("torch")
    chosen = f"{torch}.where({code.text(mask)}, {code.text(whole)}, 0).sum()"
    if method.attr == "sum":
        return changes(_SUM, code.replaced(call, chosen), *imports)
    if method.attr == "mean":
        number = f"({code.text(mask)}).sum()" if not isinstance(mask, ast.Name) else f"{code.text(mask)}.sum()"
        mean = f"{chosen} / {number}"
        bare = isinstance(code.parents.get(call), ast.Return | ast.Assign)
        return changes(_SUM, code.replaced(call, mean if bare else f"({mean})"), *imports)
    return None


def _assigned(problem: Problem, mask: ast.expr) -> Proposal | None:
    """`y[mask] = x[mask] * 2` is `y = torch.where(mask, x * 2, y)`, where `y` is the function's own."""
    code, statement, function = problem.code, problem.statement, problem.function
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1 or function is None:
        return None
    target = statement.targets[0]
    if not isinstance(target, ast.Subscript) or not isinstance(target.value, ast.Name):
        return None
    if ast.dump(target.slice) != ast.dump(mask):
        return None
    name = target.value.id
    if name in parameters(function):
        reason = f"`{name}` belongs to the caller, who would no longer see the change."
        return refused(f"Changes behaviour: {_SET}", reason)
    value = _without_mask(problem, statement.value, mask)
    torch, imports = code.module_name("torch")
    return changes(
        _SET, code.replaced(statement, f"{name} = {torch}.where({code.text(mask)}, {value}, {name})"), *imports
    )


def _without_mask(problem: Problem, value: ast.expr, mask: ast.expr) -> str:
    """The text of `value` with `x[mask]` written as `x`."""
    code = problem.code
    text, start = code.text(value), code.start(value)
    parts = (value, *own_parts(value))
    masked = [part for part in parts if isinstance(part, ast.Subscript) and ast.dump(part.slice) == ast.dump(mask)]
    for part in sorted(masked, key=code.start, reverse=True):
        if code.start(part)[0] == start[0] == code.end(part)[0]:
            first, last = (column - start[1] for column in (code.start(part)[1], code.end(part)[1]))
            text = text[:first] + code.text(part.value) + text[last:]
    return text
