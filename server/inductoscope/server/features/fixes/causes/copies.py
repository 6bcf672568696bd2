"""`copy.deepcopy` of tensors in compiled code."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from inductoscope.server.features.fixes.model import Proposal, changes, refused
from inductoscope.server.features.fixes.problem import Problem
from inductoscope.server.features.fixes.values import is_own

_TITLE = "copy the tensor with .detach().clone() (the copy asks for no gradient of its own)"


def propose(problem: Problem) -> Iterator[Proposal]:
    """`x.detach().clone()` for a tensor; what the object holds is copied once, in `__init__`."""
    code = problem.code
    for call in problem.calls():
        if code.dotted(call.func) not in ("copy.deepcopy", "copy.copy") or len(call.args) != 1 or call.keywords:
            continue
        copied = call.args[0]
        text = code.text(copied)
        if problem.values.is_tensor(copied):
            loose = not isinstance(copied, ast.Call | ast.Name | ast.Attribute | ast.Subscript)
            yield changes(_TITLE, code.replaced(call, f"{f'({text})' if loose else text}.detach().clone()"))
        elif (once := _once(problem, call, copied)) is not None:
            yield once
        else:
            reason = (
                f"`{text}` is not known to be a tensor. For a module or a container make the copy once, outside of the "
                "compiled function (in `__init__`); for other weights use torch.func.functional_call."
            )
            yield refused(f"Changes behaviour: {_TITLE}", reason)
        return


def _once(problem: Problem, call: ast.Call, copied: ast.expr) -> Proposal | None:
    """`self.layer`, copied at the end of `__init__`."""
    code = problem.code
    constructor = code.constructor_of(call)
    if not isinstance(copied, ast.Attribute) or not is_own(copied, copied.attr) or constructor is None:
        return None
    if problem.function is constructor:
        return None
    name = _free_attribute(problem, call, f"copy_of_{copied.attr.strip('_')}")
    added = code.after(constructor.body[-1], f"self.{name} = {code.text(call)}")
    title = "copy it once, at the end of `__init__` (all calls share the copy; of a module it becomes a part)"
    return changes(title, added, code.replaced(call, f"self.{name}"))


def _free_attribute(problem: Problem, call: ast.Call, name: str) -> str:
    owner = problem.code.class_of(call)
    used = {node.attr for node in ast.walk(owner) if isinstance(node, ast.Attribute)} if owner else set()
    tries = (name if number == 1 else f"{name}_{number}" for number in range(1, len(used) + 3))
    return next(text for text in tries if text not in used)
