"""Source ranges: from Python's position table to what an editor marks.

Reads source text through `linecache`, so that text that is not saved yet, once put there by the loader, counts.
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator
from functools import lru_cache

from inductoscope.compiler.marks import line_span
from inductoscope.compiler.usercode import Frame
from inductoscope.protocol.report import Span


def span_of(frame: Frame) -> Span:
    """The expression that a frame is at; the text of its line where the interpreter tells no columns."""
    if frame.column is None or frame.end_column is None:
        return line_span(frame.file, frame.line)
    end_line = frame.end_line or _end_line(frame.file, frame.line, frame.column, frame.end_column)
    first, last = (linecache.getline(frame.file, number) for number in (frame.line, end_line))
    return Span(frame.file, frame.line, _points(first, frame.column), end_line, _points(last, frame.end_column))


def syntax_tree(file: str) -> ast.Module | None:
    """The syntax tree of a file, None where it cannot be read as Python."""
    return _parse("".join(linecache.getlines(file)))


@lru_cache(maxsize=32)
def _parse(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError):
        return None


def _end_line(file: str, line: int, column: int, end_column: int) -> int:
    """The last line of the expression that starts at `line`, `column` and ends in `end_column` of some line."""
    ends = [node.end_lineno or line for node in _starting_at(file, line, column) if node.end_col_offset == end_column]
    return min(ends, default=line)


def _starting_at(file: str, line: int, column: int) -> Iterator[ast.expr | ast.stmt]:
    for node in ast.walk(syntax_tree(file) or ast.Module([], [])):
        if isinstance(node, ast.expr | ast.stmt) and (node.lineno, node.col_offset) == (line, column):
            yield node


def _points(text: str, offset: int) -> int:
    """An offset into the UTF-8 bytes of `text` as one into its code points."""
    return len(text.encode("utf-8")[:offset].decode("utf-8", "ignore"))
