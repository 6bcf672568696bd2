"""Findings as text: the line, what happened there, what helps, and where the same happened again."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from rich.console import RenderableType
from rich.text import Text

from inductoscope.protocol.report import Finding, Outcome, Severity
from inductoscope.server import words
from inductoscope.server.text.blocks import Code, gap, indented, paragraph
from inductoscope.server.text.view import Part, View

_SEVERITY = {
    Severity.ERROR: ("error", "bold red"),
    Severity.WARNING: ("warning", "bold yellow"),
    Severity.INFORMATION: ("info", "bold cyan"),
    Severity.HINT: ("hint", "bold blue"),
}
_OUTCOME = {
    Outcome.SPLIT: "graph split in two",
    Outcome.REST_EAGER: "rest of the function runs eagerly",
    Outcome.FUNCTION_EAGER: "whole function runs eagerly",
}

_GENERAL = re.compile(
    r"Please report an issue to PyTorch|This graph break is fundamental"
    r"|It may be possible to write Dynamo tracing rules"
    r"|This graph break may be difficult to debug|This is likely to be a Dynamo bug"
)
"""What torch says of whole classes of breaks (`torch/_dynamo/graph_break_hints.py`), the same each time."""

_CALLER = "called from here"


def listed(findings: Iterable[Finding], view: View) -> Iterator[RenderableType]:
    """All findings, those that say the same at several places as one."""
    alike: dict[tuple[object, ...], list[Finding]] = {}
    for finding in findings:
        alike.setdefault((finding.code, finding.id, finding.severity, finding.message, finding.hints), []).append(
            finding
        )
    said: set[str] = set()
    for first, *others in alike.values():
        yield gap()
        yield from _finding(first, others, view, said)


def _finding(finding: Finding, others: list[Finding], view: View, said: set[str]) -> Iterator[RenderableType]:
    name, style = _SEVERITY[finding.severity]
    code = f" {finding.code}{f' {finding.id}' if finding.id else ''}"
    head = Text.assemble((name, style), (code, "bold"), f"  {view.place(finding.file, finding.line)}")
    head.append(f":{finding.column + 1}")
    if finding.function:
        head.append(f" in {finding.function}", "dim")
    if finding.outcome is not None:
        head.append(f"  [{_OUTCOME[finding.outcome]}]", "yellow")
    yield indented(head)
    yield from _excerpt(finding, view, style)
    yield paragraph(finding.message)
    for hint in _hints(finding, view, said):
        yield indented(Text.assemble(("hint: ", "green"), hint), 4)
    yield from _places(finding, others, view)
    if finding.link is not None:
        yield Code(Text(f"see {finding.link}", "dim"), 4)


def _hints(finding: Finding, view: View, said: set[str]) -> Iterator[str]:
    """The hints, each once in an output, and general remarks only where there is nothing else or all is asked for."""
    special = [hint for hint in finding.hints if not _GENERAL.match(hint)]
    for hint in finding.hints if view.has(Part.ALL) else special or finding.hints:
        if hint not in said:
            said.add(hint)
            yield hint


def _places(finding: Finding, others: list[Finding], view: View) -> Iterator[RenderableType]:
    """Where the same happened, and what leads to it."""
    if others:
        yield paragraph(f"the same at {words.lines([(one.file, one.line) for one in others], finding.file)}")
    callers = [view.place(related.file, related.line) for related in finding.related if related.message == _CALLER]
    if callers:
        yield paragraph(f"called from {', from '.join(callers)}", "dim")
    for related in finding.related:
        if related.message != _CALLER:
            yield paragraph(f"{related.message}: {view.place(related.file, related.line)}", "dim")


def _excerpt(finding: Finding, view: View, style: str) -> Iterator[RenderableType]:
    """The source line with the part that is meant underlined."""
    source = view.source_line(finding.file, finding.line).rstrip()
    if not source:
        return
    end = finding.end_column if finding.end_line == finding.line else len(source)
    start, end = min(finding.column, len(source)), min(end, len(source))
    if end <= start:  # no columns are known: the line is meant
        start, end = len(source) - len(source.lstrip()), len(source)
    gutter = f"{finding.line:>6} | "
    before = "".join("\t" if char == "\t" else " " for char in source[:start])
    yield Code(Text.assemble((gutter, "dim"), source))
    yield Code(Text.assemble((" " * (len(gutter) - 2) + "| ", "dim"), before, ("^" * (end - start), style)))
