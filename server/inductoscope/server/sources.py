"""From the paths of a command line to Python files and their texts; whatever is wrong is one sentence."""

from __future__ import annotations

import io
import os
import stat
import tokenize
from collections.abc import Iterator
from pathlib import Path

_SKIPPED = frozenset({"site-packages", "dist-packages", "node_modules", "__pycache__"})
_SAVE_AS_TEXT = "Save it as UTF-8, or declare its encoding in the first line (# -*- coding: latin-1 -*-)."


class SourceError(ValueError):
    """A path that gives nothing to read; the message is a sentence."""


def python_files(path: Path) -> list[Path]:
    """The file itself, or the Python files below a folder in order of their names.

    Hidden folders, virtual environments and installed packages are left out.  Raises `SourceError`.
    """
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        raise SourceError(f"There is no file {path}.") from None
    except OSError as error:
        raise SourceError(f"{path} cannot be read: {error.strerror}.") from None
    if stat.S_ISDIR(mode):
        found = sorted(_walk(path))
        if not found:
            raise SourceError(f"There is no Python file in {path}, so there is nothing to check.")
        return found
    if path.suffix not in (".py", ".pyw"):
        raise SourceError(f"{path} is not a Python file (its name does not end in .py).")
    return [path]


def read_text(path: Path) -> str:
    """The text of a Python file in the encoding that it declares, its line ends as they are.  Raises `SourceError`."""
    try:
        if not stat.S_ISREG(path.stat().st_mode) and not path.is_dir():
            raise SourceError(f"{path} is no regular file, so it is not read.")  # to open a pipe may take for ever
        data = path.read_bytes()
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        return data.decode(encoding)
    except OSError as error:
        raise SourceError(f"{path} cannot be read: {error.strerror}.") from None
    except SyntaxError as error:
        raise SourceError(f"{path} is not Python text: {_first_line(error)}. {_SAVE_AS_TEXT}") from None
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise SourceError(f"{path}, line {line}, is not Python text: {_first_line(error)}. {_SAVE_AS_TEXT}") from None


def _walk(folder: Path) -> Iterator[Path]:
    for parent, folders, files in os.walk(folder):
        kept = (name for name in folders if not name.startswith(".") and name not in _SKIPPED)
        folders[:] = sorted(name for name in kept if not (Path(parent) / name / "pyvenv.cfg").exists())
        yield from (Path(parent) / name for name in files if name.endswith(".py"))


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0].rstrip(".")
