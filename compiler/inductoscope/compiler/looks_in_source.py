"""What the program says at a line where it looks at a device value: `if loss > 0`, `float(loss)`, `x.tolist()`.

Reads source by its syntax tree.  Says nothing where a line has several such places: which one it was is not known.
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator

_MOST = 60
"""Characters of the program's own text that are quoted."""

_NUMBERS = frozenset({"item", "float", "int", "bool", "complex", "round", "range", "is_nonzero", "__index__"})
_WHOLE = frozenset({"cpu", "numpy", "tolist", "to", "print", "str", "repr", "format", "array", "asarray", "list"})
_WAYS = {"item": (_NUMBERS, _WHOLE), "copy to CPU": (_WHOLE, _NUMBERS)}

_Text = tuple[str, ...]


def said(file: str, line: int, what: str) -> str | None:
    """The program's own words for a look of the sort `what` (`item`, `copy to CPU`, an operator's name) at a line."""
    lines = tuple(linecache.getlines(file))
    try:
        tree = ast.parse("".join(lines))
    except (SyntaxError, ValueError, RecursionError):
        return None
    nodes = [node for node in ast.walk(tree) if _covers(node, line)]
    for names in _WAYS.get(what, (frozenset({what}),)):
        calls = [node for node in nodes if isinstance(node, ast.Call) and _called(node) in names]
        if calls:
            return _quoted(calls[0], "", lines) if len(calls) == 1 else None
    conditions = list(_conditions(nodes, line)) if what == "item" else []
    return _quoted(conditions[0][1], conditions[0][0], lines) if len(conditions) == 1 else None


def _covers(node: ast.AST, line: int) -> bool:
    begin, end = getattr(node, "lineno", None), getattr(node, "end_lineno", None)
    return begin is not None and end is not None and begin <= line <= end


def _called(call: ast.Call) -> str | None:
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return call.func.id if isinstance(call.func, ast.Name) else None


def _conditions(nodes: list[ast.AST], line: int) -> Iterator[tuple[str, ast.expr]]:
    """What the line decides by, with the word before it."""
    for node in nodes:
        if isinstance(node, ast.If | ast.While | ast.Assert | ast.IfExp) and _covers(node.test, line):
            word = "if" if isinstance(node, ast.IfExp) else type(node).__name__.lower()
            yield word, node.test


def _quoted(node: ast.expr, word: str, lines: _Text) -> str | None:
    segment = ast.get_source_segment("".join(lines), node)
    if segment is None:
        return None
    text = " ".join(f"{word} {segment}".split())
    return text if len(text) <= _MOST else f"{text[: _MOST - 1].rstrip()}…"
