"""Where a file applies torch.compile to a function or class, and how it calls the result."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from inductoscope.server.features.fixes.code import Code
from inductoscope.server.features.fixes.model import Edit
from inductoscope.server.scanning.definitions import Function

COMPILE = "torch.compile"


@dataclass(frozen=True)
class Site:
    """One use of torch.compile: a bare decorator, or a call; `name` is what the result is called by."""

    node: ast.expr
    name: str | None

    @property
    def dynamic(self) -> ast.keyword | None:
        """The argument `dynamic`, where there is one."""
        keywords = self.node.keywords if isinstance(self.node, ast.Call) else []
        return next((item for item in keywords if item.arg == "dynamic"), None)

    @property
    def is_open(self) -> bool:
        """Whether it is given arguments that stand elsewhere (`**options`), among which `dynamic` can be."""
        return isinstance(self.node, ast.Call) and any(item.arg is None for item in self.node.keywords)

    def made_dynamic(self, code: Code) -> Edit:
        """With `dynamic=True`."""
        if self.dynamic is not None:
            return code.replaced(self.dynamic.value, "True")
        if not isinstance(self.node, ast.Call):
            return code.replaced(self.node, f"{code.text(self.node)}(dynamic=True)")
        passed = [*self.node.args, *(item.value for item in self.node.keywords)]
        if passed:
            end = max(_end_with_brackets(code, self.node, item) for item in passed)
            return code.over(end, end, ", dynamic=True")
        line, column = code.end(self.node)
        return code.over((line, column - 1), (line, column - 1), "dynamic=True")


def sites(code: Code, function: Function) -> tuple[Site, ...]:
    """Where `function`, or the class that it is a method of, is compiled; the only use in the file is taken for it."""
    owner = code.class_of(function)
    for node in (function, owner):
        for decorator in node.decorator_list if node else ():
            called = decorator.func if isinstance(decorator, ast.Call) else decorator
            if code.dotted(called) == COMPILE and node is not None:
                return (Site(decorator, node.name),)
    calls = [node for node in ast.walk(code.tree) if isinstance(node, ast.Call) and code.dotted(node.func) == COMPILE]
    made = [Site(call, _name_of(code, call)) for call in calls if call.args]
    named = {function.name, owner.name if owner else function.name}
    direct = [site for site in made if named & {part.id for part in ast.walk(site.node) if isinstance(part, ast.Name)}]
    return tuple(direct or (made if len(made) == 1 else ()))


def calls_of(code: Code, name: str, outside: Function) -> Iterator[ast.Call]:
    """The calls of `name` that are not in the compiled function itself."""
    inside = set(ast.walk(outside))
    for node in ast.walk(code.tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id == name
            and node not in inside
        ):
            yield node


def argument(code: Code, call: ast.Call, function: Function, parameter: str) -> ast.expr | None:
    """What a call passes for a parameter."""
    for keyword in call.keywords:
        if keyword.arg == parameter:
            return keyword.value
    names = [item.arg for item in (*function.args.posonlyargs, *function.args.args)]
    names = names[1:] if code.class_of(function) and names[:1] == ["self"] else names
    at = names.index(parameter) if parameter in names else len(call.args)
    plain = not any(isinstance(item, ast.Starred) for item in call.args)
    return call.args[at] if plain and at < len(call.args) else None


def _end_with_brackets(code: Code, call: ast.Call, item: ast.expr) -> tuple[int, int]:
    """Where an argument ends, with the brackets around it: they are no part of its node."""
    line, column = code.end(item)
    last, end = code.end(call)
    while (line, column) < (last, end - 1):
        text = code.line(line)
        if not text[column:].lstrip().startswith(")"):
            break
        column = text.index(")", column) + 1
    return line, column


def _name_of(code: Code, call: ast.Call) -> str | None:
    statement = code.parents.get(call)
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    return next((target.id for target in targets if isinstance(target, ast.Name)), None)
