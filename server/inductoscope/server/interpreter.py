"""Which Python runs the user's program.

The first of: what the user names, the project's setting, an active virtual environment, one that lies in the project,
the Python that runs Inductoscope.  Nothing is started here: whether the choice has torch, the worker says itself.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

_PROJECT_MARKS = ("pyproject.toml", "setup.py", "setup.cfg", ".git")
_FOLDERS = (".venv", "venv")


class InterpreterError(ValueError):
    """The interpreter that was asked for is not there; the message is a sentence."""


@dataclass(frozen=True)
class Interpreter:
    """The path of a Python, and why it was chosen."""

    path: str
    because: str


def choose(
    folder: Path, asked: str | None = None, configured: str | None = None, environ: Mapping[str, str] = os.environ
) -> Interpreter:
    """The interpreter for programs in `folder`.  Raises `InterpreterError` for one that was named and is not there."""
    if asked is not None:
        return Interpreter(locate(asked, "--python"), "--python")
    if configured is not None:
        return Interpreter(locate(configured, "python in [tool.inductoscope]"), "python in [tool.inductoscope]")
    active = environ.get("VIRTUAL_ENV")
    if active and (found := in_environment(Path(active))) is not None:
        return Interpreter(found, "VIRTUAL_ENV")
    for parent in _up_to_project(folder):
        for name in _FOLDERS:
            if (found := in_environment(parent / name)) is not None:
                return Interpreter(found, f"{name} in {parent}")
    return Interpreter(sys.executable, "the Python that runs Inductoscope")


def locate(text: str, setting: str) -> str:
    """The path of the interpreter that `text` names: a file, an environment's folder, or a command on the path.

    Raises `InterpreterError` naming `setting`.
    """
    if not text.strip():
        raise InterpreterError(f"{setting} is empty; name a Python interpreter, or leave it out to have one chosen.")
    path = Path(text).expanduser()
    if path.is_dir():
        found = in_environment(path)
        if found is None:
            raise InterpreterError(f"{text} ({setting}) is a folder without a Python in it; name the file.")
        return found
    if path.is_file():
        if not os.access(path, os.X_OK):
            raise InterpreterError(f"{text} ({setting}) is not executable, so it is no Python interpreter.")
        return str(path.absolute())
    command = shutil.which(text)
    if command is None:
        raise InterpreterError(f"There is no Python interpreter {text} ({setting}); name an existing one.")
    return command


def in_environment(folder: Path) -> str | None:
    """The Python of a virtual environment, or None."""
    for python in (folder / "bin" / "python", folder / "bin" / "python3", folder / "Scripts" / "python.exe"):
        if python.is_file():
            return str(python.absolute())
    return None


def _up_to_project(folder: Path) -> Iterator[Path]:
    """`folder` and its parents up to the project's own folder; without a project only `folder`."""
    parents = [folder, *folder.parents]
    roots = [index for index, parent in enumerate(parents) if any((parent / mark).exists() for mark in _PROJECT_MARKS)]
    yield from parents[: roots[0] + 1] if roots else parents[:1]
