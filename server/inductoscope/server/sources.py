"""From the paths of a command line to Python files and their texts; whatever is wrong is one sentence."""

from __future__ import annotations

import os
import tokenize
from collections.abc import Iterator
from pathlib import Path

_SKIPPED = frozenset({"site-packages", "dist-packages", "node_modules", "__pycache__"})


class SourceError(ValueError):
    """A path that gives nothing to read; the message is a sentence."""


def python_files(path: Path) -> list[Path]:
    """The file itself, or the Python files below a folder in order of their names.

    Hidden folders, virtual environments and installed packages are left out.  Raises `SourceError`.
    """
    if path.is_dir():
        found = sorted(_walk(path))
        if not found:
            raise SourceError(f"There is no Python file in {path}, so there is nothing to check.")
        return found
    if not path.exists():
        raise SourceError(f"There is no file {path}.")
    if path.suffix not in (".py", ".pyw"):
        raise SourceError(f"{path} is not a Python file (its name does not end in .py).")
    return [path]


def read_text(path: Path) -> str:
    """The text of a Python file in the encoding that it declares, its line ends as they are.  Raises `SourceError`."""
    try:
        with path.open("rb") as stream:
            encoding, _ = tokenize.detect_encoding(stream.readline)
            stream.seek(0)
            return stream.read().decode(encoding)
    except OSError as error:
        raise SourceError(f"{path} cannot be read: {error.strerror}.") from None
    except (SyntaxError, UnicodeDecodeError) as error:
        raise SourceError(f"{path} is not Python text: {_first_line(error)}.") from None


def _walk(folder: Path) -> Iterator[Path]:
    for parent, folders, files in os.walk(folder):
        kept = (name for name in folders if not name.startswith(".") and name not in _SKIPPED)
        folders[:] = sorted(name for name in kept if not (Path(parent) / name / "pyvenv.cfg").exists())
        yield from (Path(parent) / name for name in files if name.endswith(".py"))


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0].rstrip(".")
