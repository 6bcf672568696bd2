"""Failed guards as the report tells them, with the values that they met.

What torch writes about a guard is read by `torch_texts.guards`; here its variables are at hand, so that the value that
a guard met can be told, as far as it can be read without running the user's code.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import replace
from types import CellType, FunctionType, MethodType, ModuleType
from typing import Any

from inductoscope.compiler.usercode import Frame, UserCode
from inductoscope.protocol.report import GuardFailure
from inductoscope.protocol.torch_texts.guards import Reason, failure

_PLAIN = (FunctionType, MethodType, ModuleType, CellType)  # their attributes run no code of the user's
_TENSOR_FACTS = frozenset({"size", "stride", "dim", "storage_offset", "numel"})


def guard_failure(reason: Reason, user_code: UserCode, variables: Mapping[str, Any] | None) -> GuardFailure:
    """The failed guard as the report tells it; `variables` are those that it was checked against (`G` the globals)."""
    found = failure(reason.guard, lambda node: _value(node, variables))
    at = user_code.innermost([Frame(place.file, place.line, place.function or "") for place in reason.stack])
    return replace(found, hint=reason.hint, file=at.file if at else None, line=at.line if at else None)


def _value(node: ast.expr, variables: Mapping[str, Any] | None) -> str | None:
    """The value of a guarded source as short text, None where it cannot be read without running the user's code."""
    if variables is None:
        return None
    try:
        value = _read(node, variables)
    except (AttributeError, KeyError, IndexError, TypeError, ValueError):
        return None
    if isinstance(value, bool | int | float | complex | str | bytes | None | list | tuple):
        text = repr(value)
        return text if len(text) <= 80 else None
    return None


def _read(node: ast.expr, variables: Mapping[str, Any]) -> Any:
    """Follow names, attributes and subscripts, as the guard itself does."""
    if isinstance(node, ast.Name):
        return variables[node.id]
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Attribute):
        return _attribute(_read(node.value, variables), node.attr)
    if isinstance(node, ast.Subscript):
        owner = _read(node.value, variables)
        if isinstance(owner, dict | list | tuple):
            return owner[_read(node.slice, variables)]
    if isinstance(node, ast.Call):
        return _measure(node, variables)
    raise ValueError(f"{type(node).__name__} is not read")


def _attribute(owner: Any, name: str) -> Any:
    """An attribute that is stored, not computed: of the object, of its module tables, or of Python's own kinds."""
    if isinstance(owner, _PLAIN):
        return getattr(owner, name)
    held: Mapping[str, Any] = getattr(owner, "__dict__", {})
    for table in (held, *(held.get(part) or {} for part in ("_parameters", "_buffers", "_modules"))):
        if name in table:
            return table[name]
    raise AttributeError(name)


def _measure(node: ast.Call, variables: Mapping[str, Any]) -> Any:
    if isinstance(node.func, ast.Name) and node.func.id == "len" and len(node.args) == 1:
        owner = _read(node.args[0], variables)
        if isinstance(owner, dict | list | tuple | set | str):
            return len(owner)
    if isinstance(node.func, ast.Attribute) and node.func.attr in _TENSOR_FACTS and not node.args:
        return tuple(getattr(_read(node.func.value, variables), node.func.attr)())
    raise ValueError("calls are not read")
