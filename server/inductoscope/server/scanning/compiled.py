"""Where a file applies `torch.compile`, and to what.

Understands the decorator in all its spellings, `name = torch.compile(thing)`, and calls inside functions whose argument
can be followed to a definition of the file.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from inductoscope.server.scanning.definitions import Function, Module, Scope, assigned

_DEPTH = 8
"""How many assignments are followed from a name to its definition."""


@dataclass(frozen=True)
class Definition:
    """A function or class of the module; `method` names the method that is meant, where it is not the whole class."""

    node: Function | ast.ClassDef
    method: str | None = None


@dataclass(frozen=True)
class Application:
    """One use of `torch.compile`.

    `name` and `statement` are the module-level name of the result, where there is one; `subject` what was compiled,
    where it could be followed.
    """

    subject: Definition | None
    name: str | None = None
    statement: ast.stmt | None = None


def applications(module: Module) -> Iterator[Application]:
    """All uses in the file, decorators first."""
    finder = _Finder(module)
    yield from finder.decorated()
    for scope in module.scopes():
        yield from finder.called(scope)


class _Finder:
    def __init__(self, module: Module) -> None:
        self._module = module
        self._partials = {
            name
            for statement in module.source.tree.body
            for name in assigned(statement)
            if isinstance(value := getattr(statement, "value", None), ast.Call) and self._is_partial(value)
        }

    def decorated(self) -> Iterator[Application]:
        for node in self._module.names.values():
            if isinstance(node, ast.FunctionDef) and self._has_decorator(node):
                yield Application(Definition(node))
            elif isinstance(node, ast.ClassDef):
                if any(self._is_decorator(decorator) for decorator in node.decorator_list):
                    yield Application(Definition(node))
                for method in node.body:
                    if isinstance(method, ast.FunctionDef) and self._has_decorator(method):
                        yield Application(Definition(node, method.name))

    def called(self, scope: Scope) -> Iterator[Application]:
        trail = _Trail(self._module, self, scope)
        for statement in scope.body:
            value = getattr(statement, "value", None)
            names = list(assigned(statement)) if scope.reachable else []
            for call in _calls(statement):
                subject = self.subject(call)
                if subject is None:
                    continue
                definition = trail.follow(subject)
                if names and call is value:
                    yield Application(definition, names[-1], statement)
                elif definition is not None:
                    yield Application(definition)

    def _has_decorator(self, node: ast.FunctionDef) -> bool:
        return any(self._is_decorator(decorator) for decorator in node.decorator_list)

    def _is_decorator(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Call):
            return self._is_compile(node.func) or self._is_partial(node)
        return self._is_compile(node)

    def _is_compile(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Name) and node.id in self._partials:
            return True
        return self._module.dotted(node) == "torch.compile"

    def _is_partial(self, call: ast.Call) -> bool:
        is_partial = self._module.dotted(call.func) == "functools.partial"
        return is_partial and bool(call.args) and self._module.dotted(call.args[0]) == "torch.compile"

    def subject(self, call: ast.Call) -> ast.expr | None:
        """What a call compiles: `torch.compile(f)`, `torch.compile(mode=...)(f)`, `model.compile()`."""
        if self._is_compile(call.func):
            by_name = [keyword.value for keyword in call.keywords if keyword.arg == "model"]
            return next(iter([*call.args, *by_name]), None)
        if isinstance(call.func, ast.Call) and self._is_decorator(call.func) and self.subject(call.func) is None:
            return call.args[0] if call.args else None
        if isinstance(call.func, ast.Attribute) and call.func.attr == "compile" and self._builds_module(call):
            return call.func.value
        return None

    def _builds_module(self, call: ast.Call) -> bool:
        """Whether `x.compile()` can be `nn.Module.compile`: no argument by position, and x no imported module."""
        assert isinstance(call.func, ast.Attribute)
        value = call.func.value
        imported = isinstance(value, ast.Name) and value.id in self._module.imports
        return not call.args and not imported


class _Trail:
    """Follows expressions of one scope to the definitions that they come from."""

    def __init__(self, module: Module, finder: _Finder, scope: Scope) -> None:
        self._module = module
        self._finder = finder
        self._scope = scope
        self._local = _local_values(scope)

    def follow(self, node: ast.expr, depth: int = _DEPTH) -> Definition | None:
        """The definition of this file behind `node`, or None."""
        if depth == 0:
            return None
        match node:
            case ast.Name():
                return self._name(node.id, depth)
            case ast.Call():
                return self._call(node, depth)
            case ast.Attribute():
                return self._method(node, depth)
        return None

    def _name(self, name: str, depth: int) -> Definition | None:
        for value in self._local.get(name, ()):
            found = self.follow(value, depth - 1)
            if found is not None:
                return found
        binding = self._module.names.get(name)
        hidden = name in self._local and not self._scope.reachable
        if isinstance(binding, ast.FunctionDef | ast.ClassDef) and not hidden:
            return Definition(binding)
        made = getattr(binding, "value", None)
        if isinstance(made, ast.expr) and name not in self._local:
            return self.follow(made, depth - 1)
        return None

    def _call(self, node: ast.Call, depth: int) -> Definition | None:
        subject = self._finder.subject(node)
        if subject is not None:
            return self.follow(subject, depth - 1)
        made = self._module.class_named(node.func.id) if isinstance(node.func, ast.Name) else None
        if made is not None:
            return Definition(made)
        if isinstance(node.func, ast.Attribute):  # a method that returns its object: `Model().to("cuda").eval()`
            return self.follow(node.func.value, depth - 1)
        return None

    def _method(self, node: ast.Attribute, depth: int) -> Definition | None:
        owner = self.follow(node.value, depth - 1)
        if isinstance(node.value, ast.Name) and node.value.id == "self" and self._scope.owner is not None:
            owner = Definition(self._scope.owner)
        if owner is None or not isinstance(owner.node, ast.ClassDef) or owner.method is not None:
            return None
        return Definition(owner.node, node.attr) if self._module.method(owner.node, node.attr) else None


def _local_values(scope: Scope) -> dict[str, list[ast.expr]]:
    values: dict[str, list[ast.expr]] = {}
    for statement in scope.body:
        value = getattr(statement, "value", None)
        for name in assigned(statement):
            if isinstance(value, ast.expr):
                values.setdefault(name, []).append(value)
    return values


def _calls(statement: ast.stmt) -> Iterator[ast.Call]:
    """The calls in the expressions of one statement, not in the statements or definitions that it holds."""
    waiting: list[ast.AST] = [statement]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Call):
            yield node
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue  # decorators are looked at on their own
        parts = ast.iter_child_nodes(node)
        waiting.extend(part for part in parts if not isinstance(part, ast.stmt | ast.excepthandler | ast.match_case))
