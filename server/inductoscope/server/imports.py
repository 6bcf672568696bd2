"""Which files of the workspace a file imports, directly or not, and what they say, found by reading them.

Enough to know what has to be run again after an edit; an import that is computed at run time is not seen.  Reads text
only and runs nothing.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

Reader = Callable[[str], "str | None"]
"""The text of a file, unsaved text included, or None when there is no such file."""

FILE_LIMIT = 500
"""Files after which a closure stops growing; a workspace that large is better served by an explicit check."""


@dataclass(frozen=True)
class _Import:
    """`import module`, or `from module import names` when `names` is not empty; `level` counts the leading dots."""

    module: str
    level: int = 0
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Contents:
    """A parsed text: a digest of its meaning, apart from comments and layout, and its imports."""

    source: str
    digest: str
    imports: tuple[_Import, ...]


class Imports:
    """Closures of files.  What a text says is remembered until the text is another."""

    def __init__(self, read: Reader) -> None:
        self._read = read
        self._contents: dict[str, _Contents] = {}

    def closure(self, path: str, roots: tuple[str, ...]) -> dict[str, str]:
        """Digests of `path` and of all files that it reaches, by path.

        Absolute imports are looked up beside the importing file, at the root of its package and in `roots`.  Files
        that cannot be parsed are left out.
        """
        found: dict[str, str] = {}
        waiting = [path]
        seen = {path}
        while waiting and len(found) < FILE_LIMIT:
            current = waiting.pop()
            contents = self._contents_of(current)
            if contents is None:
                continue
            found[current] = contents.digest
            for candidate in _files_of(current, contents.imports, roots):
                if candidate not in seen:
                    seen.add(candidate)
                    waiting.append(candidate)
        return found

    def _contents_of(self, path: str) -> _Contents | None:
        source = self._read(path)
        known = self._contents.get(path)
        if known is not None and known.source == source:
            return known
        self._contents.pop(path, None)
        tree = _parse(source) if source is not None else None
        if source is None or tree is None:
            return None
        digest = hashlib.sha256(ast.dump(tree).encode("utf-8", "surrogatepass")).hexdigest()
        self._contents[path] = _Contents(source, digest, tuple(_imports(tree)))
        return self._contents[path]


def _parse(source: str) -> ast.Module | None:
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _imports(tree: ast.Module) -> Iterator[_Import]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (_Import(alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield _Import(node.module or "", node.level, tuple(alias.name for alias in node.names))


def _files_of(path: str, imports: tuple[_Import, ...], roots: tuple[str, ...]) -> Iterator[str]:
    absolute = tuple(dict.fromkeys([Path(path).parent, _package_root(path), *map(Path, roots)]))
    parents = Path(path).parents
    for item in imports:
        bases = (parents[min(item.level, len(parents)) - 1],) if item.level else absolute
        yield from _files(bases, item.module)
        for name in item.names:  # which may be a module too
            yield from _files(bases, f"{item.module}.{name}")


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
