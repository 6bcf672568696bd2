"""Python source as the scan sees it: a tree and its lines, or one sentence about why there is none.

Nothing is run.  Columns that leave this module are code points.
"""

from __future__ import annotations

import ast
import re
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass

from inductoscope.server.positions import Text


@dataclass(frozen=True)
class Source:
    """A parsed file."""

    file: str
    text: Text
    tree: ast.Module

    def column(self, line: int, utf8_column: int) -> int:
        """The code point at a column of `ast`, which counts UTF-8 bytes."""
        return len(self.text.line(line).encode("utf-8", "surrogatepass")[:utf8_column].decode("utf-8", "ignore"))


@dataclass(frozen=True)
class Unreadable:
    """Why a text is no Python, and where: 1-based line, 0-based column."""

    message: str
    line: int
    column: int


@dataclass(frozen=True)
class _Newer:
    """Syntax that came with a Python version, recognised in the line that an older parser stumbles over."""

    version: tuple[int, int]
    what: str
    in_line: Callable[[str], bool]


def _matching(pattern: str) -> Callable[[str], bool]:
    expression = re.compile(pattern)
    return lambda line: expression.search(line) is not None


_NEWER = (
    _Newer((3, 11), "except*", _matching(r"^\s*except\s*\*")),
    _Newer((3, 12), "type parameters", _matching(r"^\s*((async\s+)?def|class)\s+\w+\s*\[")),
    _Newer((3, 12), "the type statement", _matching(r"^\s*type\s+\w+\s*(\[.*\])?\s*=")),
    _Newer((3, 12), "quotes or backslashes inside an f-string", _matching(r"\b[fF][rR]?['\"]")),
    _Newer((3, 13), "defaults of type parameters", _matching(r"^\s*(def|class|type)\s+\w+\s*\[.*=")),
    _Newer((3, 14), "template strings", _matching(r"\b[tT][rR]?['\"]")),
    _Newer((3, 14), "except without parentheses", _matching(r"^\s*except\s+[\w.]+\s*,")),
)


def parse(text: str, file: str) -> Source | Unreadable:
    """The tree of `text`, or why there is none."""
    lines = Text(text.removeprefix("\ufeff"))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about the user's escapes and comparisons, which are not ours to judge
            tree = ast.parse(lines.source, filename=file)
    except SyntaxError as error:
        return _unreadable(error, lines)
    except ValueError as error:
        return Unreadable(f"This file is not Python: {error}.", 1, 0)
    except (RecursionError, MemoryError):
        return Unreadable("This file is nested too deeply to be read; split the deepest expression.", 1, 0)
    return Source(file, lines, tree)


def _unreadable(error: SyntaxError, text: Text) -> Unreadable:
    line = min(max(error.lineno or 1, 1), len(text.lines))
    column = min(max((error.offset or 1) - 1, 0), len(text.line(line)))
    message = f"Line {line} is not valid Python: {error.msg} (column {column + 1})."
    return Unreadable(f"{message}{_version_note(text.line(line))}", line, column)


def _version_note(line: str) -> str:
    for newer in _NEWER:
        if newer.version > sys.version_info[:2] and newer.in_line(line):
            needed, own = f"{newer.version[0]}.{newer.version[1]}", f"{sys.version_info[0]}.{sys.version_info[1]}"
            return (
                f" If this is {newer.what}, it needs Python {needed}, and Inductoscope runs on {own}: "
                f"run it with Python {needed} or newer."
            )
    return ""
