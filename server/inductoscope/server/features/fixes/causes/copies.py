"""`copy.deepcopy` of tensors in compiled code."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from inductoscope.server.features.fixes.model import Proposal, changes, refused
from inductoscope.server.features.fixes.problem import Problem

_TITLE = "copy the tensor with .detach().clone() (the copy asks for no gradient of its own)"


def propose(problem: Problem) -> Iterator[Proposal]:
    """`x.detach().clone()` for a tensor; what holds tensors has to be copied outside."""
    code = problem.code
    for call in problem.calls():
        if code.dotted(call.func) not in ("copy.deepcopy", "copy.copy") or len(call.args) != 1 or call.keywords:
            continue
        copied = call.args[0]
        text = code.text(copied)
        if problem.values.is_tensor(copied):
            loose = not isinstance(copied, ast.Call | ast.Name | ast.Attribute | ast.Subscript)
            yield changes(_TITLE, code.replaced(call, f"{f'({text})' if loose else text}.detach().clone()"))
        else:
            reason = (
                f"`{text}` is not known to be a tensor. For a module or a container make the copy once, outside of the "
                "compiled function (in `__init__`); for other weights use torch.func.functional_call."
            )
            yield refused(f"Changes behaviour: {_TITLE}", reason)
        return
