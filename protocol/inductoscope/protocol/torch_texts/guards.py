"""Reading the reasons that torch gives for a recompilation.

A reason is `frame/compile: guard`, padded, then for guards that a line of code made `# code # file:line in function`,
perhaps a `(HINT: …)`, and from 2.11 on a `User stack trace:` in the form of a traceback.  Guards on tensors are English
(`tensor 'x' size mismatch at index 0. expected 4, actual 5`), the others are Python expressions over the function's
variables, with globals under `G[...]`.  Checked by running on 2.11 to 2.15.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from inductoscope.protocol.report import GuardFailure, Place

ValueOf: TypeAlias = Callable[[ast.expr], "str | None"]
"""The value of a guarded expression as short text, None where it is not known."""

_STACK = "\nUser stack trace:\n"
_STACK_LINE = re.compile(r'^  File "(?P<file>.+)", line (?P<line>\d+), in (?P<function>.+)$', re.M)
_HINT = re.compile(r"\s*\(HINT: (?P<hint>.*)\)\s*$", re.S)
_COMMENT = re.compile(r"\s*  # ")
_TENSOR = re.compile(
    r"tensor '(?P<source>.*?)' (?P<what>[\w ]+?) mismatch(?: at index (?P<index>\d+))?\. ?(?P<rest>.*)", re.S
)
_EXPECTED = re.compile(r"[Ee]xpected (?P<expected>.*?)(?:, actual (?P<actual>.*))?$", re.S)
_CALLED = re.compile(
    r"(?:not )?(?:___)?(?P<name>\w+)\((?P<source>.+?)(?:, (?P<value>[^,()]+))?\)(?:, type=(?P<type>.+))?$", re.S
)
_NUMBER = re.compile(r"-?\d+(\.\d+)?")
_TEXT = re.compile(r"'[^']*'")
_KINDS = {
    "size": "size",
    "stride": "stride",
    "dtype": "dtype",
    "rank": "rank",
    "requires_grad": "requires-grad",
    "dispatch key set": "dispatch-keys",
    "Tensor device index": "device",
}
_CHECKS = {
    "check_type_id": "type",
    "check_obj_id": "identity",
    "dict_contains": "key",
    "hasattr": "attribute",
    "set.__contains__": "member",
}


@dataclass(frozen=True)
class Reason:
    """Why one compiled version of a function could not be used, as torch wrote it."""

    compile_id: str
    guard: str
    stack: tuple[Place, ...]
    hint: str | None


def read_reasons(payload: str) -> tuple[Reason, ...]:
    """The reasons in a `recompile_reasons` record, the newest compiled version first.

    The record says that it is JSON, but a single reason is bare text.
    """
    try:
        texts = json.loads(payload)
    except ValueError:
        texts = [payload]
    return tuple(_read_reason(str(text)) for text in (texts if isinstance(texts, list) else [texts]))


def _read_reason(text: str) -> Reason:
    compile_id, _, rest = text.partition(": ")
    rest, _, stack = rest.partition(_STACK)
    hint = _HINT.search(rest)
    if hint:
        rest = rest[: hint.start()]
    frames = tuple(Place(m["file"], int(m["line"]), m["function"]) for m in _STACK_LINE.finditer(stack))
    return Reason(compile_id, _without_comment(rest), frames, " ".join(hint["hint"].split()) if hint else None)


def _without_comment(text: str) -> str:
    """The guard alone: up to the first comment that leaves a whole expression, for `#` may stand in a string."""
    ends = [match.start() for match in _COMMENT.finditer(text)]
    whole = (end for end in ends if _expression(text[:end]) is not None)
    return text[: next(whole, ends[0] if ends else len(text))].strip()


def nothing_known(_: ast.expr) -> str | None:
    """Where only the text is at hand: no value is known."""
    return None


def family(guard: str) -> str:
    """The guard with numbers and texts replaced, so that its repetitions with other values are one thing."""
    guard = guard.partition(" at index ")[0] if guard.startswith("tensor ") else guard
    if re.match(r"[A-Z]\w+(?: \w+)*: ", guard) and not guard.startswith("GLOBAL_STATE"):
        guard = guard.partition(":")[0]
    left, equals, right = guard.rpartition(" == ")
    guard = left + equals + _TEXT.sub("'S'", right) if equals else guard
    return _NUMBER.sub("N", guard).strip()


def failure(guard: str, value_of: ValueOf = nothing_known) -> GuardFailure:
    """What a guard compares, read from its text alone; `value_of` tells what it met."""
    if match := _TENSOR.match(guard):
        return _tensor_guard(guard, match)
    if guard.startswith("GLOBAL_STATE changed:"):
        changed = guard.partition(":")[2].strip()
        return _failure(guard, changed or "global state", "global-state", None, None)
    if guard.startswith("BACKEND_MATCH"):
        return _failure(guard, "backend", "backend", None, None)
    tree = _expression(guard)
    if tree is not None:
        return _expression_guard(guard, tree.body, value_of)
    if match := _CALLED.match(guard):
        expected = match["type"] or match["value"]
        return _failure(guard, match["source"], _CHECKS.get(match["name"], "check"), expected, None)
    return _failure(guard, "", "other", None, None)


def _tensor_guard(guard: str, match: re.Match[str]) -> GuardFailure:
    values = _EXPECTED.search(match["rest"])
    expected, actual = (values["expected"], values["actual"]) if values else (None, None)
    return _failure(guard, match["source"], _KINDS.get(match["what"], match["what"]), expected, actual)


def _expression_guard(guard: str, body: ast.expr, value_of: ValueOf) -> GuardFailure:
    if isinstance(body, ast.UnaryOp) and isinstance(body.op, ast.Not):
        subject, expected, kind = body.operand, "empty", "length"
        if isinstance(subject, ast.Call):
            return _call_guard(guard, subject, "no")
        value = value_of(ast.Call(ast.Name("len"), [subject], []))
        return _failure(guard, ast.unparse(subject), kind, expected, value)
    if isinstance(body, ast.Compare) and len(body.ops) == 1:
        return _comparison(guard, body, value_of)
    if isinstance(body, ast.Compare) and len(body.ops) == 2:  # `2 <= x.size()[0] <= 15`
        return _condition(guard, body.comparators[0], value_of)
    if isinstance(body, ast.Call):
        return _call_guard(guard, body, "yes")
    return _failure(guard, guard, "condition", guard, None)


def _comparison(guard: str, body: ast.Compare, value_of: ValueOf) -> GuardFailure:
    left, right = body.left, body.comparators[0]
    if isinstance(left, ast.Constant):
        left, right = right, left
    if not isinstance(body.ops[0], ast.Eq):
        return _condition(guard, left, value_of)
    measured = isinstance(left, ast.Call) and isinstance(left.func, ast.Name) and left.func.id == "len"
    kind = "length" if measured else "shape" if re.search(r"\.(size|stride)\(\)", ast.unparse(left)) else "value"
    source = left.args[0] if measured and isinstance(left, ast.Call) else left
    return _failure(guard, ast.unparse(source), kind, ast.unparse(right), value_of(left))


def _condition(guard: str, about: ast.expr, value_of: ValueOf) -> GuardFailure:
    kind = "shape" if re.search(r"\.(size|stride)\(\)", guard) else "condition"
    return _failure(guard, ast.unparse(about), kind, guard, value_of(about))


def _call_guard(guard: str, call: ast.Call, expected: str) -> GuardFailure:
    name = ast.unparse(call.func).removeprefix("___")
    subject = ast.unparse(call.args[-1] if name == "dict_contains" else call.args[0]) if call.args else name
    return _failure(guard, subject, _CHECKS.get(name, "check"), expected, None)


def _failure(guard: str, source: str, kind: str, expected: str | None, actual: str | None) -> GuardFailure:
    return GuardFailure(source=source, kind=kind, expected=expected, actual=actual, text=guard, family=family(guard))


def _expression(text: str) -> ast.Expression | None:
    try:
        return ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError):
        return None
