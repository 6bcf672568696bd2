"""Edits that answer a finding.  Every one says what it does; one that can change behaviour says so."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from inductoscope.protocol.report import Finding
from inductoscope.server.positions import Text
from inductoscope.server.snapshot import Snapshot


@dataclass(frozen=True)
class Fix:
    """Text to insert at the start of line `line` (1-based) of a file, and the finding that it answers."""

    title: str
    path: str
    line: int
    text: str
    finding: Finding


def fixes(snapshot: Snapshot, path: str, first: int, last: int) -> Iterator[Fix]:
    """The fixes for what is found on lines `first` to `last` of an open file."""
    file, document = snapshot.files.get(path), snapshot.documents.get(path)
    if file is None or document is None:
        return
    for finding in file.scan.findings:
        if finding.code == "no-inputs" and finding.hints and first <= finding.line <= last:
            yield _inputs_comment(document.text, finding)


def _inputs_comment(text: Text, finding: Finding) -> Fix:
    line = _first_line(text, finding.line)
    code = text.line(line)
    indent = code[: len(code) - len(code.lstrip())]
    title = "Write a comment with example inputs (put the sizes right afterwards)"
    return Fix(title, finding.file, line, f"{indent}{finding.hints[0]}\n", finding)


def _first_line(text: Text, line: int) -> int:
    """The line at which a definition starts, decorators included."""
    try:
        tree = ast.parse(text.source)
    except (SyntaxError, ValueError, RecursionError):
        return line
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and node.lineno == line:
            return min([line, *(decorator.lineno for decorator in node.decorator_list)])
    return line
