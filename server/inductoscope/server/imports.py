"""Which files a Python text imports, found by reading it and by looking which files there are.

Enough to know what has to be run again after an edit; an import that is computed at run time is not seen.  Runs nothing
and remembers nothing: `graph` does.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from inductoscope.server import meaning
from inductoscope.server.meaning import Meaning

_STATEMENT = re.compile(
    r"^[ \t]*(?:import[ \t][^\n;]+|from[ \t]+[.\w]+[ \t]+import[ \t]*(?:\([^)]*\)|[^\n;(]+))", re.MULTILINE
)
"""What looks like an import, on a line of its own or in brackets over several."""


@dataclass(frozen=True)
class Import:
    """`import module`, or `from module import names` when `names` is not empty; `level` counts the leading dots."""

    module: str
    level: int = 0
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Contents:
    """What one text means and imports."""

    meaning: Meaning
    imports: tuple[Import, ...]


def read(source: str, path: str = ".py") -> Contents:
    """The contents of a text; one that is no Python imports nothing, a large one is looked through line by line."""
    if not path.endswith((".py", ".pyw")):
        return Contents(meaning.of(source, None), ())
    if len(source) > meaning.LARGE:
        found = (meaning.parse(statement[0].strip()) for statement in _STATEMENT.finditer(source))
        imports = tuple(item for tree in found if tree is not None for item in _imports(tree))
        return Contents(meaning.of(source, None), imports)
    tree = meaning.parse(source)
    imports = tuple(_imports(tree)) if tree is not None else ()
    return Contents(meaning.of(source, tree), imports)


def files_of(path: str, imports: tuple[Import, ...], roots: tuple[str, ...]) -> Iterator[str]:
    """The files that these imports of `path` load: modules, and the packages that they are in.

    Absolute imports are looked up beside the importing file, at the root of its package and in `roots`.
    """
    absolute = tuple(dict.fromkeys([Path(path).parent, _package_root(path), *map(Path, roots)]))
    parents = Path(path).parents
    for item in imports:
        bases = (parents[min(item.level, len(parents)) - 1],) if item.level else absolute
        yield from _files(bases, item.module)
        for name in item.names:  # which may be a module too
            yield from _files(bases, f"{item.module}.{name}")


def _imports(tree: ast.Module) -> Iterator[Import]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (Import(alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield Import(node.module or "", node.level, tuple(alias.name for alias in node.names))


def _files(bases: tuple[Path, ...], module: str) -> Iterator[str]:
    """The file of the module and the `__init__.py` of each package on the way, in the first base that has it."""
    parts = [part for part in module.split(".") if part]
    for base in bases:
        packages = [base.joinpath(*parts[:depth], "__init__.py") for depth in range(1, len(parts) + 1)]
        leaf = base.joinpath(*parts).with_suffix(".py") if parts else base / "__init__.py"
        files = [str(file) for file in (*packages, leaf) if file.is_file()]
        if files:
            yield from files
            return


def _package_root(path: str) -> Path:
    folder = Path(path).parent
    while (folder / "__init__.py").is_file() and folder.parent != folder:
        folder = folder.parent
    return folder
