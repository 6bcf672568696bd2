"""What the names of a module stand for, as far as its text tells: definitions, classes, imports, assignments.

Last binding wins, branches of `if` and `try` count alike, code under `if __name__ == "__main__"` does not count because
an import does not run it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from inductoscope.server.scanning.syntax import Source

Function: TypeAlias = "ast.FunctionDef | ast.AsyncFunctionDef"
Binding: TypeAlias = "Function | ast.ClassDef | ast.Assign | ast.AnnAssign | ast.Import | ast.ImportFrom"


@dataclass(frozen=True)
class Scope:
    """Statements that share local names: the body of a function, of a main guard, or of the module."""

    body: tuple[ast.stmt, ...]
    owner: ast.ClassDef | None = None
    reachable: bool = False
    """Whether an import binds the names, so that they can be reached from outside: true of the module alone."""


class Module:
    """The module-level names of a source and what its imports call things."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.imports = dict(_imports(source.tree))
        self.names: dict[str, Binding] = {}
        for statement in executed(source.tree.body):
            for name in _bound(statement):
                self.names[name] = statement  # type: ignore[assignment]  # only bindings bind names

    def dotted(self, node: ast.expr) -> str | None:
        """The full name that an expression of names and dots means: `nn.Module` is `torch.nn.Module`."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return None
        parts.append(self.imports.get(node.id, node.id))
        return ".".join(reversed(parts))

    def class_named(self, name: str) -> ast.ClassDef | None:
        """The module-level class of that name."""
        node = self.names.get(name)
        return node if isinstance(node, ast.ClassDef) else None

    def classes(self) -> Iterator[ast.ClassDef]:
        """All module-level classes."""
        return (node for node in self.names.values() if isinstance(node, ast.ClassDef))

    def is_module_class(self, node: ast.ClassDef) -> bool:
        """Whether the class derives from something of `torch.nn`, by way of classes of this file too."""
        return any((self.dotted(base) or "").startswith("torch.nn.") for cls in self._line(node) for base in cls.bases)

    def method(self, node: ast.ClassDef, name: str) -> Function | None:
        """The method of the class, or of the nearest class of this file that it is inherited from."""
        for cls in self._line(node):
            for statement in executed(cls.body):
                if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef) and statement.name == name:
                    return statement
        return None

    def scopes(self) -> Iterator[Scope]:
        """Every scope of the file, the module first."""
        yield Scope(tuple(executed(self.source.tree.body)), reachable=True)
        for statement in _statements(self.source.tree.body):
            if isinstance(statement, ast.If) and _is_main_guard(statement):
                yield Scope(tuple(_statements(statement.body)))
        yield from _function_scopes(self.source.tree.body, None)

    def _line(self, node: ast.ClassDef) -> list[ast.ClassDef]:
        """The class and its bases in this file, nearest first."""
        line = [node]
        for cls in line:
            for base in cls.bases:
                found = self.class_named(base.id) if isinstance(base, ast.Name) else None
                if found is not None and found not in line:
                    line.append(found)
        return line


def executed(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements that an import runs, those in branches and loops among them."""
    return _statements(body, skip_main_guard=True)


def _statements(body: Sequence[ast.stmt], *, skip_main_guard: bool = False) -> Iterator[ast.stmt]:
    for statement in body:
        if skip_main_guard and isinstance(statement, ast.If) and _is_main_guard(statement):
            yield from _statements(statement.orelse, skip_main_guard=True)
            continue
        yield statement
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        for part in ("body", "orelse", "finalbody"):
            yield from _statements(getattr(statement, part, ()), skip_main_guard=skip_main_guard)
        for handler in getattr(statement, "handlers", ()):
            yield from _statements(handler.body, skip_main_guard=skip_main_guard)
        for case in getattr(statement, "cases", ()):
            yield from _statements(case.body, skip_main_guard=skip_main_guard)


def _is_main_guard(node: ast.If) -> bool:
    names = {part.id for part in ast.walk(node.test) if isinstance(part, ast.Name)}
    values = {part.value for part in ast.walk(node.test) if isinstance(part, ast.Constant)}
    return "__name__" in names and "__main__" in values


def _function_scopes(body: Sequence[ast.stmt], owner: ast.ClassDef | None) -> Iterator[Scope]:
    for statement in _statements(body):
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            yield Scope(tuple(_statements(statement.body)), owner)
            yield from _function_scopes(statement.body, owner)
        elif isinstance(statement, ast.ClassDef):
            yield from _function_scopes(statement.body, statement)


def _bound(statement: ast.stmt) -> Iterator[str]:
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield statement.name
    elif isinstance(statement, ast.Import | ast.ImportFrom):
        for alias in statement.names:
            yield (alias.asname or alias.name).split(".")[0]
    else:
        yield from assigned(statement)


def assigned(statement: ast.stmt) -> Iterator[str]:
    """The plain names that an assignment binds."""
    if isinstance(statement, ast.Assign):
        for target in statement.targets:
            if isinstance(target, ast.Name):
                yield target.id
    elif isinstance(statement, ast.AnnAssign) and statement.value and isinstance(statement.target, ast.Name):
        yield statement.target.id


def _imports(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield (alias.asname, alias.name) if alias.asname else (alias.name.split(".")[0],) * 2
        elif isinstance(node, ast.ImportFrom) and not node.level:
            for alias in node.names:
                yield alias.asname or alias.name, f"{node.module}.{alias.name}"
