"""A Python number among the arguments that changes from call to call: compile for any, or pass it as a tensor."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from inductoscope.server.features.fixes import compiling
from inductoscope.server.features.fixes.causes import shapes
from inductoscope.server.features.fixes.model import Edit, Proposal, changes
from inductoscope.server.features.fixes.problem import Problem
from inductoscope.server.features.fixes.values import parameters

_FAMILY = re.compile(r"(?P<name>[A-Za-z_]\w*)(?P<part>\[N\])* == N")
_RATE = "self.param_groups[N]['lr'] == N"
_FLOAT = re.compile(r"== -?\d+(\.\d*(e-?\d+)?|e-?\d+)`")


def propose(problem: Problem) -> Iterator[Proposal]:
    """`dynamic=True`; for a fraction also a tensor in place of the number, where the compiled function is called."""
    if (problem.finding.guard_family or "") == _RATE:
        yield from _rate_as_tensor(problem)
    match = _FAMILY.fullmatch(problem.finding.guard_family or "")
    function = problem.function
    if match is None or function is None or match["name"] not in parameters(function):
        return
    if match["part"] is None and _FLOAT.search(problem.finding.message):
        yield from _as_tensor(problem, match["name"])
    yield from shapes.made_dynamic(problem)


def _as_tensor(problem: Problem, parameter: str) -> Iterator[Proposal]:
    code, function = problem.code, problem.function
    assert function is not None
    torch, imports = code.module_name("torch")
    edits: list[Edit] = []
    for site in compiling.sites(code, function):
        for call in compiling.calls_of(code, site.name, function) if site.name else ():
            passed = compiling.argument(code, call, function, parameter)
            made = code.dotted(passed.func) if isinstance(passed, ast.Call) else ""
            if passed is None or made == "torch.tensor":
                return
            edits.append(code.replaced(passed, f"{torch}.tensor({code.text(passed)})"))
    if edits:
        yield changes(f"pass `{parameter}` as a tensor (of torch's default type)", *edits, *imports)


def _rate_as_tensor(problem: Problem) -> Iterator[Proposal]:
    """The learning rate of the optimizers that the file makes."""
    code = problem.code
    torch, imports = code.module_name("torch")
    edits = [
        code.replaced(item.value, f"{torch}.tensor({code.text(item.value)})")
        for call in ast.walk(code.tree)
        if isinstance(call, ast.Call) and code.dotted(call.func).startswith("torch.optim.")
        for item in call.keywords
        if item.arg == "lr" and isinstance(item.value, ast.Constant)
    ]
    if edits:
        yield changes("keep the learning rate in a tensor (schedules then change it in place)", *edits, *imports)
