"""Which files of the workspace a file imports, directly or not, found by reading them.

Enough to know what has to be run again after an edit; an import that is computed at run time is not seen.  Reads text
only and runs nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from pathlib import Path

Reader = Callable[[str], "str | None"]
"""The text of a file, unsaved text included, or None when there is no such file."""

FILE_LIMIT = 500
"""Files after which a closure stops growing; a workspace that large is better served by an explicit check."""


def closure(path: str, read: Reader, roots: tuple[str, ...]) -> dict[str, ast.Module]:
    """The syntax trees of `path` and of all files it reaches, by path.

    Absolute imports are looked up beside the importing file, at the root of its package and in `roots`.  Files that
    cannot be parsed are left out.
    """
    found: dict[str, ast.Module] = {}
    waiting = [path]
    seen = {path}
    while waiting and len(found) < FILE_LIMIT:
        current = waiting.pop()
        tree = _parse(read(current))
        if tree is None:
            continue
        found[current] = tree
        for candidate in _imported(current, tree, roots):
            if candidate not in seen:
                seen.add(candidate)
                waiting.append(candidate)
    return found


def _parse(source: str | None) -> ast.Module | None:
    if source is None:
        return None
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _imported(path: str, tree: ast.Module, roots: tuple[str, ...]) -> Iterator[str]:
    bases = tuple(dict.fromkeys([Path(path).parent, _package_root(path), *map(Path, roots)]))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _files(bases, alias.name)
        elif isinstance(node, ast.ImportFrom):
            yield from _from(path, node, bases)


def _from(path: str, node: ast.ImportFrom, bases: tuple[Path, ...]) -> Iterator[str]:
    if node.level:
        bases = (Path(path).parents[min(node.level, len(Path(path).parents)) - 1],)
    module = node.module or ""
    yield from _files(bases, module)
    for alias in node.names:
        yield from _files(bases, f"{module}.{alias.name}".lstrip("."))


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
