"""Statements by line: what a line says and in which definition it stands, without where that is in the file.

A statement is written as Python itself would write it, so that neither layout, nor comments, nor a longer line above
makes another of it.  Reads texts only.
"""

from __future__ import annotations

import ast
import copy
import io
import keyword
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass

from inductoscope.server.positions import Text

_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@dataclass(frozen=True)
class Statement:
    """`scope` is the dotted name of the innermost definition around it, empty for the module."""

    scope: str
    text: str


class Statements:
    """The statements of one file."""

    def __init__(self, source: str) -> None:
        self._text = Text(source)
        self._known: dict[int, Statement] = {}
        try:
            self._tree: ast.Module | None = ast.parse(source)
        except (SyntaxError, ValueError, RecursionError):
            self._tree = None

    def at(self, line: int) -> Statement:
        """The innermost statement on a line (1-based), by its head where it has a body."""
        if line not in self._known:
            self._known[line] = self._find(line)
        return self._known[line]

    def _find(self, line: int) -> Statement:
        scope: list[str] = []
        found: ast.stmt | None = None
        node: ast.AST | None = self._tree
        while node is not None:
            node = next((child for child in _children(node) if _first(child) <= line <= (child.end_lineno or 0)), None)
            if node is not None:
                found = node
                if isinstance(node, _DEFINITIONS):
                    scope.append(node.name)
        text = _head(found) if found is not None else None
        return Statement(".".join(scope), self._plain(line) if text is None else text)

    def _plain(self, line: int) -> str:
        """The line with single blanks: for files that are no Python, and lines between statements."""
        return " ".join(self._text.line(line).split())


def shape(text: str) -> str:
    """A statement with its variables renamed to `_`: names that are not called, nor reached through a dot."""
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (tokenize.TokenError, IndentationError, SyntaxError):
        return text
    words = [token.string for token in tokens if token.string.strip()]
    around = zip(["", *words], words, [*words[1:], ""], strict=False)
    return " ".join(_renamed(before, word, after) for before, word, after in around)


def _renamed(before: str, word: str, after: str) -> str:
    is_variable = word.isidentifier() and not keyword.iskeyword(word) and before != "." and after != "("
    return "_" if is_variable else word


def _children(node: ast.AST) -> Iterator[ast.stmt]:
    """The statements right inside of a node; handlers and cases are no statements, what is in them counts."""
    for name in _BLOCKS:
        for child in getattr(node, name, ()):
            if isinstance(child, ast.stmt):
                yield child
            else:
                yield from child.body


def _first(node: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


def _head(node: ast.stmt) -> str | None:
    """The statement without what is in its body."""
    head = copy.copy(node)
    for name in (*_BLOCKS, "decorator_list"):
        if hasattr(head, name):
            setattr(head, name, [])
    try:
        return " ".join(ast.unparse(head).split())
    except (ValueError, RecursionError):  # too deep to be written
        return None
