"""Which modules a program imports before it does anything else, so that they may be imported before it is edited.

A warm process may have imported a module only if it is there what it would be in a new process.  So the statements of
the program are followed in the order in which they run, up to the first one that does more than to define and import:
what comes after it might see what it did.  Files that are being edited are never imported, only followed.  Reads text
and runs nothing.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from inductoscope.server import imports
from inductoscope.server.imports import Import

Read = Callable[[str], "str | None"]
"""The text of a file, unsaved text included; None when there is none."""

_ALWAYS_THERE = frozenset({"torch", "triton", "numpy", "__future__", *sys.stdlib_module_names})
"""Packages that every warm process has, or that are imported in no time."""

_HARMLESS_CALLS = frozenset(
    {
        "TypeVar",
        "ParamSpec",
        "NewType",
        "namedtuple",
        "getLogger",
        "Path",
        "frozenset",
        "tuple",
        "range",
        "float",
        "int",
    }
)
_HARMLESS_DECORATORS = frozenset(
    {"dataclass", "dataclasses", "staticmethod", "classmethod", "property", "functools", "cache", "lru_cache", "wraps"}
    | {"abstractmethod", "abc", "override", "overload", "typing", "contextmanager", "contextlib"}
)
_HOOKS = ("__init_subclass__", "__set_name__", "metaclass", "__class_getitem__", "__getattr__")
"""Words of classes that do something when others are defined, and of modules that do when they are looked at."""


@dataclass(frozen=True)
class Prelude:
    """Dotted names in the order of their imports: `installed` packages, and these with the program's `own` modules."""

    installed: tuple[str, ...]
    own: tuple[str, ...]


def of(file: str, read: Read, roots: tuple[str, ...], edited: Set[str]) -> Prelude:
    """The prelude of the program `file`, whose imports are looked up in `roots` too, while `edited` files change."""
    installed, own = _Walk(read, roots, None), _Walk(read, roots, frozenset({file, *edited}))
    for walk in (installed, own):
        walk.follow(file)
    return Prelude(tuple(dict.fromkeys(installed.names)), tuple(dict.fromkeys(own.names)))


class _Walk:
    """Follows one program; without `edited`, no file of the program counts as one that stays as it is."""

    def __init__(self, read: Read, roots: tuple[str, ...], edited: Set[str] | None) -> None:
        self._read = read
        self._roots = roots
        self._edited = edited
        self._followed: set[str] = set()
        self._steady: dict[str, bool] = {}
        self.names: list[str] = []

    def follow(self, file: str) -> bool:
        """Note what `file` imports; False when something comes that must not be overtaken."""
        if file in self._followed:
            return True
        self._followed.add(file)
        for statement in _body(self._read(file)):
            if isinstance(statement, ast.Import | ast.ImportFrom):
                if not all(self._note(file, item) for item in _imports(statement)):
                    return False
            elif not _is_inert(statement):
                return False
        return True

    def _note(self, file: str, item: Import) -> bool:
        name = _absolute(file, item)
        if name is None:
            return False
        found = tuple(imports.files_of(file, (item,), self._roots))
        if not found:
            if name.partition(".")[0] not in _ALWAYS_THERE:
                self.names.append(name)
            return True
        if self._edited is not None and all(self._is_steady(one) for one in found):
            self.names.append(name)
            return True
        return all(self.follow(one) for one in found)

    def _is_steady(self, file: str) -> bool:
        """Whether importing the file defines and imports, and nothing of it is being edited."""
        if file not in self._steady:
            self._steady[file] = True  # while it is looked at: a cycle adds nothing
            self._steady[file] = self._look(file)
        return self._steady[file]

    def _look(self, file: str) -> bool:
        assert self._edited is not None
        text = self._read(file)
        if text is None or file in self._edited or any(word in text for word in _HOOKS):
            return False
        if not all(self._is_steady(package) for package in _packages(file)):
            return False
        for statement in _body(text):
            if isinstance(statement, ast.Import | ast.ImportFrom):
                for item in _imports(statement):
                    if not all(self._is_steady(one) for one in imports.files_of(file, (item,), self._roots)):
                        return False
            elif not _is_inert(statement):
                return False
        return True


def _imports(statement: ast.Import | ast.ImportFrom) -> Iterator[Import]:
    if isinstance(statement, ast.Import):
        yield from (Import(alias.name) for alias in statement.names)
    else:
        yield Import(statement.module or "", statement.level, tuple(alias.name for alias in statement.names))


def _absolute(file: str, item: Import) -> str | None:
    """The dotted name of the module that is imported; None where the package of `file` is not known."""
    if not item.level:
        return item.module
    parts = [Path(package).parent.name for package in reversed(tuple(_packages(file)))]
    if item.level > len(parts):
        return None
    base = parts[: len(parts) - item.level + 1]
    return ".".join([*base, *filter(None, [item.module])])


def _packages(file: str) -> Iterator[str]:
    """The `__init__.py` of the packages that a file is in, the innermost first."""
    folder = Path(file).parent
    while (init := folder / "__init__.py").is_file() and folder.parent != folder:
        yield str(init)
        folder = folder.parent


@lru_cache(maxsize=256)
def _body(text: str | None) -> tuple[ast.stmt, ...]:
    """The statements of a text; one that is no Python does something that is not known."""
    try:
        return tuple(ast.parse(text or "").body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return (ast.Raise(),)


def _is_inert(statement: ast.stmt) -> bool:
    """Whether a statement does nothing but to bind names to what is always the same."""
    match statement:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            defaults = [*statement.args.defaults, *filter(None, statement.args.kw_defaults)]
            return all(map(_is_harmless, statement.decorator_list)) and all(map(_is_value, defaults))
        case ast.ClassDef():
            plain = all(map(_is_harmless, statement.decorator_list)) and not statement.keywords
            return plain and all(map(_is_value, statement.bases)) and all(map(_is_inert, statement.body))
        case ast.Assign(targets=targets, value=value):
            return all(isinstance(target, ast.Name | ast.Tuple) for target in targets) and _is_value(value)
        case ast.AnnAssign(value=value, annotation=annotation):
            return _is_value(annotation) and (value is None or _is_value(value))
        case ast.Expr(value=ast.Constant()) | ast.Pass():
            return True
        case ast.If(test=test):
            return not _runs(test)
    return False


def _runs(test: ast.expr) -> bool:
    """Whether the body of an `if` at the top of a module may run while it is imported."""
    match test:
        case ast.Name(id="TYPE_CHECKING") | ast.Attribute(attr="TYPE_CHECKING"):
            return False
        case ast.Compare(left=ast.Name(id="__name__"), comparators=[ast.Constant(value="__main__")]):
            return False
    return True


def _is_harmless(decorator: ast.expr) -> bool:
    first = decorator
    while isinstance(first, ast.Attribute | ast.Call):
        first = first.value if isinstance(first, ast.Attribute) else first.func
    return isinstance(first, ast.Name) and first.id in _HARMLESS_DECORATORS


def _is_value(expression: ast.expr) -> bool:
    """Whether an expression has no effect and the same value at any time."""
    return all(_is_plain(node) for node in ast.walk(expression))


def _is_plain(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Name(id=name)) | ast.Call(func=ast.Attribute(attr=name)):
            return name in _HARMLESS_CALLS
        case ast.Attribute(attr="environ" | "argv" | "path"):
            return False
        case ast.Call() | ast.Await() | ast.Yield() | ast.YieldFrom() | ast.NamedExpr():
            return False
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            return False
    return True
