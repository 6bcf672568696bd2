"""Clocks that are read in compiled code: while compiling they read zero."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from inductoscope.server.features.fixes.model import Edit, Proposal, changes
from inductoscope.server.features.fixes.problem import Problem

_SECONDS = ("time.time", "time.perf_counter", "time.monotonic", "time.process_time", "time.thread_time")
_CLOCKS = dict.fromkeys(_SECONDS, "0.0") | dict.fromkeys([f"{name}_ns" for name in _SECONDS], "0")


def propose(problem: Problem) -> Iterator[Proposal]:
    """All clock reads of the function at once, since a difference of a real and a missing time would be nonsense."""
    code, function = problem.code, problem.function
    if function is None or not any(code.dotted(call.func) in _CLOCKS for call in problem.calls()):
        return
    torch, imports = code.module_name("torch")
    edits = []
    for call in ast.walk(function):
        if isinstance(call, ast.Call) and code.dotted(call.func) in _CLOCKS and not _is_guarded(problem, call):
            zero = _CLOCKS[code.dotted(call.func)]
            edits.append(
                _conditional(problem, call, f"{zero} if {torch}.compiler.is_compiling() else {code.text(call)}")
            )
    if edits:
        yield changes("measure no time when compiled (all clocks of the function)", *edits, *imports)


def _conditional(problem: Problem, call: ast.Call, text: str) -> Edit:
    bare = isinstance(problem.code.parents.get(call), ast.Assign | ast.AnnAssign | ast.keyword)
    return problem.code.replaced(call, text if bare else f"({text})")


def _is_guarded(problem: Problem, call: ast.Call) -> bool:
    """Whether it is in the other branch of `… if torch.compiler.is_compiling() else …` already."""
    around = (node for node in problem.code.ancestors(call) if isinstance(node, ast.IfExp | ast.If))
    return any("is_compiling" in ast.dump(node.test) for node in around)
