"""What a program's text means, apart from comments, layout and docstrings that nothing looks at.

Two texts of the same meaning compile to the same thing, so nothing has to be run again.  A docstring counts only where
something may look at it: a decorator from elsewhere, or code that reads documentation.  Reads text and runs nothing.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

LARGE = 300_000
"""Characters, some ten thousand lines, from which on a text takes too long to be read as Python between two keystrokes:
it then means what it says, letter by letter."""

_READERS = {"__doc__", "getdoc", "getsource", "getsourcelines", "doctest"}
"""Names whose mention means that a program may look at docstrings, its own or those of a file it imports."""

_ENVIRONMENTS = {"environ", "environb", "getenv"}
"""Names whose mention means that a program may look at environment variables."""

_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]+")

_BLIND = {
    *("torch", "functools", "contextlib", "dataclasses", "abc", "abstractmethod", "typing", "override", "overload"),
    *("staticmethod", "classmethod", "property", "dataclass", "wraps", "contextmanager", "lru_cache", "cache"),
}
"""Decorators, by the first name in them, that do no more than hand a docstring on.  `triton.jit` does more."""

_Documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class Meaning:
    """Digests of one text: with all docstrings, without those that only a reader of documentation looks at, and letter
    by letter.  `variables` are names that it may look up in the environment."""

    documented: str
    plain: str
    reads_docs: bool
    exact: str = ""
    variables: frozenset[str] = frozenset()


def of(source: str, tree: ast.Module | None) -> Meaning:
    """The meaning of a text and its tree; a text that is no Python (`tree` is None) means what it says, letter by
    letter.  Takes the docstrings out of `tree`."""
    exact = name_of([source])
    if tree is None:
        return Meaning(exact, exact, reads_docs=False, exact=exact)
    names = frozenset().union(*map(_names, ast.walk(tree)))
    docstrings = _drop_unseen(tree)
    plain = name_of([ast.dump(tree)])
    variables = frozenset(filter(_VARIABLE.fullmatch, names)) if names & _ENVIRONMENTS else frozenset()
    return Meaning(name_of([plain, *docstrings]), plain, not _READERS.isdisjoint(names), exact, variables)


def parse(source: str) -> ast.Module | None:
    """The syntax tree of a text, or None when it is no Python."""
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def tree(source: str) -> ast.Module | None:
    """The part of the syntax tree that `Meaning.plain` names: texts that mean the same have the same nodes in it."""
    parsed = parse(source)
    if parsed is not None:
        _drop_unseen(parsed)
    return parsed


def program(closure: Mapping[str, Meaning]) -> str:
    """A name for what a file and all files that it imports say, from the meaning of each by path."""
    reads_docs = any(meaning.reads_docs for meaning in closure.values())
    said = {path: meaning.documented if reads_docs else meaning.plain for path, meaning in closure.items()}
    return name_of(part for item in sorted(said.items()) for part in item)


def name_of(parts: Iterable[str]) -> str:
    """A name for some texts in their order."""
    state = hashlib.sha256()
    for part in parts:
        state.update(part.encode("utf-8", "surrogatepass") + b"\0")
    return state.hexdigest()


def _drop_unseen(tree: ast.Module) -> list[str]:
    """Take out the docstrings that only a reader of documentation looks at; returns them, each with where it was."""
    dropped: list[str] = []
    for position, node in enumerate(ast.walk(tree)):
        if isinstance(node, _Documented) and _is_unseen(node):
            docstring = ast.get_docstring(node, clean=False)
            if docstring is not None:
                dropped.append(f"{position} {docstring}")
                del node.body[0]
    return dropped


def _is_unseen(node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    decorators = [] if isinstance(node, ast.Module) else node.decorator_list
    return all(_first_name(decorator) in _BLIND for decorator in decorators)


def _first_name(decorator: ast.expr) -> str:
    while isinstance(decorator, ast.Attribute | ast.Call):
        decorator = decorator.value if isinstance(decorator, ast.Attribute) else decorator.func
    return decorator.id if isinstance(decorator, ast.Name) else ""


def _names(node: ast.AST) -> set[str]:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.alias(name=name):
            return set(name.split("."))
        case ast.ImportFrom(module=str(name)):
            return set(name.split("."))
        case ast.Constant(value=str(text)):  # as in getattr(f, "__doc__")
            return {text}
    return set()
