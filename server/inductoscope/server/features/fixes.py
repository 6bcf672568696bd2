"""Edits that answer a finding.  Every one says what it does; one that changes behaviour says so in its title.

Texts are read as syntax trees only; a place that is not exactly what a fix knows how to change gets none.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from inductoscope.protocol.report import Finding
from inductoscope.server import diagnostics
from inductoscope.server.diagnostics import Shown
from inductoscope.server.positions import Text
from inductoscope.server.snapshot import Snapshot


@dataclass(frozen=True)
class Fix:
    """Replace the lines from `line` up to, not including, `end_line` (1-based) by `text`; equal lines insert."""

    title: str
    path: str
    line: int
    end_line: int
    text: str
    answers: Shown


def fixes(snapshot: Snapshot, path: str, first: int, last: int) -> Iterator[Fix]:
    """The fixes for what is shown on lines `first` to `last` of an open file."""
    document = snapshot.documents.get(path)
    tree = _parse(document.text) if document else None
    if document is None or tree is None:
        return
    for shown in diagnostics.merge(snapshot).get(path, ()):
        finding = shown.finding
        if not first <= finding.line <= last:
            continue
        if finding.code == "no-inputs" and finding.hints:
            yield _inputs_comment(document.text, tree, finding, shown)
        elif finding.code == "graph-break":
            yield from _not_while_compiling(document.text, tree, finding, shown)


def _inputs_comment(text: Text, tree: ast.Module, finding: Finding, shown: Shown) -> Fix:
    """The comment that the finding proposes, above the definition and its decorators."""
    line = finding.line
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and node.lineno == finding.line:
            line = min([line, *(decorator.lineno for decorator in node.decorator_list)])
    title = "Write a comment with example inputs (put the sizes right afterwards)"
    return Fix(title, finding.file, line, line, f"{_indent(text.line(line))}{finding.hints[0]}\n", shown)


def _not_while_compiling(text: Text, tree: ast.Module, finding: Finding, shown: Shown) -> Iterator[Fix]:
    """A statement that only tells something need not be traced: `torch.compiler.is_compiling` is known to Dynamo."""
    statement = next((node for node in _telling(tree) if node.lineno <= finding.line <= _end(node)), None)
    if statement is None or not _imports_torch(tree) or not _stands_alone(text, statement):
        return
    indent = _indent(text.line(statement.lineno))
    lines = [text.line(number) for number in range(statement.lineno, _end(statement) + 1)]
    moved = "".join(f"    {line}\n" if line.strip() else "\n" for line in lines)
    yield Fix(
        "Do this only when not compiled (changes behaviour: the compiled program stays silent)",
        finding.file,
        statement.lineno,
        _end(statement) + 1,
        f"{indent}if not torch.compiler.is_compiling():\n{moved}",
        shown,
    )


def _telling(tree: ast.Module) -> Iterator[ast.Expr]:
    """The statements that print, log or warn."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            called = node.value.func
            if isinstance(called, ast.Name) and called.id == "print":
                yield node
            elif isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name):
                owner = called.value.id.lower()
                if owner in ("logging", "logger", "log", "_logger") or (owner, called.attr) == ("warnings", "warn"):
                    yield node


def _stands_alone(text: Text, statement: ast.Expr) -> bool:
    """Whether its lines hold nothing else, and can be indented without changing a string that spans lines."""
    last = _end(statement)
    before = text.line(statement.lineno).encode()[: statement.col_offset]
    after = text.line(last).encode()[statement.end_col_offset or 0 :].strip()
    strings = (node for node in ast.walk(statement) if isinstance(node, ast.Constant | ast.JoinedStr))
    return not before.strip() and after[:1] in (b"", b"#") and all(node.lineno == _end(node) for node in strings)


def _imports_torch(tree: ast.Module) -> bool:
    imports = (node for node in tree.body if isinstance(node, ast.Import))
    return any((alias.asname or alias.name.partition(".")[0]) == "torch" for node in imports for alias in node.names)


def _end(node: ast.stmt | ast.expr) -> int:
    return node.end_lineno or node.lineno


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _parse(text: Text) -> ast.Module | None:
    try:
        return ast.parse(text.source)
    except (SyntaxError, ValueError, RecursionError):
        return None
