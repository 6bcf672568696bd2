"""Import the user's file as the program itself would, with the texts of unsaved buffers in place of files.

A file inside a package gets its dotted name, any other its own stem; never `__main__`.  Unsaved texts replace files for
every import, and `linecache`, `inspect` and tracebacks see the same text.  Knows nothing of targets.
"""

from __future__ import annotations

import ast
import importlib.abc
import importlib.machinery
import importlib.util
import linecache
import os
import re
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from inductoscope.compiler import failures, opened
from inductoscope.compiler.failures import IsUser, RunFailedError
from inductoscope.protocol.messages import FailureKind


@dataclass(frozen=True)
class ModuleName:
    """The package and the last name of a file, and the folder that has to be on the path for them."""

    package: str
    stem: str
    root: Path

    @property
    def name(self) -> str:
        """The dotted name."""
        return f"{self.package}.{self.stem}" if self.package else self.stem


Attempt = Callable[[], types.ModuleType]
"""Imports the file anew each time it is called."""


def load(
    file: str,
    overlays: Mapping[str, str],
    search_paths: Sequence[str],
    is_user: IsUser,
    importing: Callable[[Attempt], types.ModuleType] = lambda attempt: attempt(),
) -> types.ModuleType:
    """Import `file`; `importing` makes the attempt, or more than one.

    Raises `RunFailedError` when it cannot be imported.
    """
    import torch

    importlib.invalidate_caches()  # a worker that waited for its run may have looked into folders that changed since
    texts = OverlayFinder(overlays)
    sys.meta_path.insert(0, texts)
    name = module_name(Path(file), texts.read(file))
    extend_path(name.root, Path(file).parent, search_paths)
    known = frozenset(sys.modules)

    def attempt() -> types.ModuleType:
        _forget_others(known, is_user)
        torch.manual_seed(0)
        try:
            return _import(name, file, texts)
        except RunFailedError:
            raise
        except BaseException as error:
            raise RunFailedError(failures.at_import(error, file, is_user)) from error

    module = importing(attempt)
    torch.manual_seed(0)
    return module


def _forget_others(known: frozenset[str], is_user: IsUser) -> None:
    """Let the user's own modules that are not `known` be imported again."""
    for name in frozenset(sys.modules) - known:
        file = getattr(sys.modules[name], "__file__", None)
        if isinstance(file, str) and is_user(file):
            del sys.modules[name]


def closure(is_user: IsUser) -> tuple[str, ...]:
    """The user's own files among the modules that are imported now, and the data files that were read."""
    files = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
    # torch has modules without a file that give a bare name such as `_ops.py`.
    modules = {file for file in files if isinstance(file, str) and Path(file).is_absolute() and is_user(file)}
    return tuple(sorted({*modules, *opened.record().files(is_user)}))


def module_name(file: Path, text: str | None) -> ModuleName:
    """The name under which a program would import `file`.

    The package root is found by walking up while there is an `__init__.py`, and at least as far as the relative imports
    in the file reach: a package may do without `__init__.py`.
    """
    parts: list[str] = []
    folder = file.parent
    levels = _relative_levels(text)
    while folder != folder.parent and ((folder / "__init__.py").is_file() or levels > 0):
        parts.insert(0, folder.name)
        folder = folder.parent
        levels -= 1
    if file.stem == "__init__" and parts:
        return ModuleName(".".join(parts[:-1]), parts[-1], folder)
    return ModuleName(".".join(parts), file.stem, folder)


def extend_path(root: Path, folder: Path, search_paths: Sequence[str]) -> None:
    """Put the package root first on the path, then the configured folders; the file's own folder last.

    A folder that is already there stays where it is: to move `site-packages` forward would let what is installed
    shadow the standard library.
    """
    opened.record()  # what is imported from now on is the user's, and may read data
    known = {os.path.realpath(entry) for entry in sys.path if entry}
    front = [path for path in (str(root), *search_paths) if os.path.realpath(path) not in known]
    sys.path[:0] = list(dict.fromkeys(front))
    if os.path.realpath(folder) not in {os.path.realpath(entry) for entry in sys.path if entry}:
        sys.path.append(str(folder))


class OverlayFinder(importlib.abc.MetaPathFinder):
    """Gives modules whose file has an unsaved text a loader for that text.

    The other finders decide which file a name stands for, so that everything but the text stays as it is.
    """

    def __init__(self, overlays: Mapping[str, str]) -> None:
        self._texts = {os.path.realpath(path): text for path, text in overlays.items()}
        for path, text in overlays.items():
            _show(path, text)

    def read(self, file: str) -> str | None:
        """The text of `file`, unsaved or on the disk; None where it cannot be read."""
        text = self._texts.get(os.path.realpath(file))
        if text is not None:
            return text
        try:
            return importlib.util.decode_source(Path(file).read_bytes())
        except (OSError, SyntaxError, UnicodeDecodeError):
            return None

    def loader(self, name: str, file: str) -> importlib.machinery.SourceFileLoader:
        """The loader that runs the text of `file` as module `name`."""
        text = self._texts.get(os.path.realpath(file))
        if text is None:
            return importlib.machinery.SourceFileLoader(name, file)
        _show(file, text)
        return _OverlayLoader(name, file, text)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The spec of `fullname` if its file has an unsaved text."""
        if not self._texts:
            return None
        for finder in sys.meta_path:
            spec = None if finder is self else finder.find_spec(fullname, path, target)
            if spec is not None and spec.loader is not None:
                return self._overlaid(fullname, spec)
        return self._unsaved(fullname, path)

    def _overlaid(self, name: str, spec: importlib.machinery.ModuleSpec) -> importlib.machinery.ModuleSpec | None:
        if spec.origin is None or os.path.realpath(spec.origin) not in self._texts:
            return None
        spec.loader = self.loader(name, spec.origin)
        return spec

    def _unsaved(self, name: str, path: Sequence[str] | None) -> importlib.machinery.ModuleSpec | None:
        """A module that is nowhere on the disk yet."""
        tail = name.rpartition(".")[2]
        for folder in sys.path if path is None else path:
            for file in (Path(folder, tail, "__init__.py"), Path(folder, f"{tail}.py")):
                if os.path.realpath(file) in self._texts:
                    return importlib.util.spec_from_file_location(name, file, loader=self.loader(name, str(file)))
        return None


def _show(path: str, text: str) -> None:
    # Without a time stamp, so that linecache does not compare the entry with the file on the disk.
    linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)


class _OverlayLoader(importlib.machinery.SourceFileLoader):
    """Runs a text that is not saved; reads and writes no bytecode."""

    def __init__(self, fullname: str, path: str, text: str) -> None:
        super().__init__(fullname, path)
        self._text = text

    def get_code(self, fullname: str) -> types.CodeType:
        return compile(self._text, self.path, "exec", dont_inherit=True)

    def get_source(self, fullname: str) -> str:
        return self._text


def _import(name: ModuleName, file: str, texts: OverlayFinder) -> types.ModuleType:
    """Import by name where the name leads to `file`, so that other modules that import it get the same module."""
    if _leads_to(name.name, file):
        return importlib.import_module(name.name)
    if name.package and not _is_package_of(name.package, file):
        top = name.package.partition(".")[0]
        owner = getattr(sys.modules.get(top), "__file__", None) or "another place"
        message = (
            f"{Path(file).name} cannot be imported as {name.name}: a package {top!r} is already loaded from {owner}. "
            "Rename one of the two, or install the project into the interpreter (pip install -e)."
        )
        raise RunFailedError(failures.failed(FailureKind.IMPORT, message, None))
    return _import_beside(name, file, texts)


def _is_package_of(package: str, file: str) -> bool:
    folders = getattr(importlib.import_module(package), "__path__", ())
    return os.path.realpath(Path(file).parent) in map(os.path.realpath, folders)


def _leads_to(name: str, file: str) -> bool:
    if not all(part.isidentifier() for part in name.split(".")):
        return False
    try:
        spec = importlib.util.find_spec(name)
    except ValueError:  # a module without a spec, such as __main__
        return False
    return spec is not None and spec.origin is not None and os.path.realpath(spec.origin) == os.path.realpath(file)


def _import_beside(wanted: ModuleName, file: str, texts: OverlayFinder) -> types.ModuleType:
    """Import `file` under a name of its own: its stem is no name, or is that of another module."""
    name = ModuleName(wanted.package, re.sub(r"\W", "_", wanted.stem), wanted.root).name
    while name in sys.modules or not _leads_nowhere(name):
        name += "_"
    spec = importlib.util.spec_from_file_location(name, file, loader=texts.loader(name, file))
    assert spec is not None and spec.loader is not None  # a loader was given
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _leads_nowhere(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is None
    except ValueError:
        return False


def _relative_levels(text: str | None) -> int:
    """How many folders up the deepest relative import in `text` reaches; 0 without any."""
    if text is None:
        return 0
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return 0
    return max((node.level for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)), default=0)
