"""Settings of Dynamo that let it trace what broke the graph: those that its hints name and that change no result."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from inductoscope.server.features.fixes.model import Proposal, refused, same
from inductoscope.server.features.fixes.problem import Problem
from inductoscope.server.features.fixes.values import bound_by

_HINTED = re.compile(r"torch\._dynamo\.(?:config\.)?(?P<name>\w+)\s*=\s*(?P<value>True|False)")
_DO = {
    "capture_scalar_outputs": "Let the compiler trace numbers that are read from tensors",
    "capture_dynamic_output_shape_ops": "Let the compiler trace operators whose result's size depends on data",
    "trace_autograd_ops": "Let the compiler trace backward passes",
    "allow_unspec_int_on_nn_module": "Let the compiler treat integer attributes of modules as changing numbers",
}
_HINTED_BY_NAME = re.compile(r"torch\._dynamo\.config\.(?P<name>allow_unspec_int_on_nn_module)\b")


def propose(problem: Problem) -> Iterator[Proposal]:
    """The setting, for the whole process, below the imports."""
    code = problem.code
    for name in hinted(problem.finding.hints):
        if name == "capture_scalar_outputs" and _decides(problem):
            continue
        torch, imports = code.module_name("torch")
        line = f"{torch}._dynamo.config.{name} = True"
        title = f"{_DO[name]} (torch._dynamo.config.{name})"
        at = code.at_top(line)
        if name == "capture_scalar_outputs" and (test := _later_test(problem)) is not None:
            reason = f"What is read decides a branch in line {test.lineno}, which would break the graph instead."
            yield refused(title, reason)
        elif name == "capture_scalar_outputs" and _is_truth(problem):
            yield refused(
                title, "What is read is true or false: the branch that it decides would break the graph instead."
            )
        elif at is None:
            yield refused(title, "This file sets it already, but the run had it off: it is set elsewhere or too late.")
        else:
            yield same(title, at, *imports)


def _decides(problem: Problem) -> bool:
    """Whether the number decides a branch right where it is read: then the branch breaks the graph instead."""
    marked = problem.node
    if marked is None:
        return False
    around = problem.code.ancestors(marked)
    tests = (node.test for node in around if isinstance(node, ast.If | ast.While | ast.IfExp))
    return any(marked in ast.walk(test) for test in tests)


def _later_test(problem: Problem) -> ast.expr | None:
    """The condition of a later branch of the function that holds a name to which the number is given."""
    statement, function = problem.statement, problem.function
    names = bound_by(statement) if statement is not None else set()
    for node in ast.walk(function) if function is not None and names else ():
        if isinstance(node, ast.If | ast.While | ast.IfExp) and statement is not None:
            held = {part.id for part in ast.walk(node.test) if isinstance(part, ast.Name)}
            if names & held and node.test.lineno > statement.lineno:
                return node.test
    return None


def _is_truth(problem: Problem) -> bool:
    """Whether what is read is a truth value: `x.any().item()`, `(x > 0).item()`."""
    for call in problem.calls():
        if isinstance(call.func, ast.Attribute) and call.func.attr == "item":
            read = call.func.value
            method = read.func.attr if isinstance(read, ast.Call) and isinstance(read.func, ast.Attribute) else ""
            return isinstance(read, ast.Compare) or method in ("any", "all")
    return False


def hinted(hints: tuple[str, ...]) -> Iterator[str]:
    """The settings that hints name and that change no result."""
    found = [match["name"] for hint in hints for match in _HINTED.finditer(hint) if match["value"] == "True"]
    found += [match["name"] for hint in hints for match in _HINTED_BY_NAME.finditer(hint)]
    yield from (name for name in dict.fromkeys(found) if name in _DO)
