"""An assertion about data that Dynamo cannot trace as written: `not`, `and`, `.item()`, a message made of values."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator

from inductoscope.server.features.fixes.conditions import DATA_DEPENDENT, Conditions, NoTensorError
from inductoscope.server.features.fixes.model import Proposal, changes, refused
from inductoscope.server.features.fixes.problem import Problem

_TENSOR = "assert on a tensor (once compiled, a failure is a RuntimeError)"
_EAGER = "check this only when not compiled"


def propose(problem: Problem) -> Iterator[Proposal]:
    """The same assertion about one tensor, and one that only the uncompiled program makes."""
    statement, code = problem.statement, problem.code
    if not isinstance(statement, ast.Assert) or not problem.is_about(*DATA_DEPENDENT):
        return
    torch, imports = code.module_name("torch")
    try:
        test = Conditions(code, problem.values, torch).tensor(statement.test)
    except NoTensorError as error:
        yield refused(f"Changes behaviour: {_TENSOR}", str(error))
    else:
        edits = [code.replaced(statement.test, test)] if test != code.text(statement.test) else []
        if statement.msg is not None and not isinstance(statement.msg, ast.Constant):
            edits.append(
                code.replaced(statement.msg, json.dumps(plain_message(problem, statement.msg), ensure_ascii=False))
            )
        if edits:
            yield changes(_TENSOR, *edits, *imports)
    if not problem.is_left_out and code.stands_alone(statement) and code.can_be_indented(statement):
        guarded = code.under(statement, f"if not {torch}.compiler.is_compiling():")
        yield changes(_EAGER, guarded, *imports)


def plain_message(problem: Problem, message: ast.expr) -> str:
    """A message without values in it: of an f-string the text, with the names of the values."""
    if isinstance(message, ast.Constant) and isinstance(message.value, str):
        return message.value
    parts = message.values if isinstance(message, ast.JoinedStr) else [message]
    return "".join(_plain(problem, part) for part in parts)


def _plain(problem: Problem, part: ast.expr) -> str:
    if isinstance(part, ast.Constant):
        return str(part.value)
    value = part.value if isinstance(part, ast.FormattedValue) else part
    return f"{{{ast.unparse(value)}}}"
