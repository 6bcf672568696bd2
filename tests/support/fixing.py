"""Quick fixes without a session: a text, a made-up finding in it, and what comes out when a fix is applied."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any

from inductoscope.protocol.report import Finding, Rung, Severity
from inductoscope.server.features.fixes import Edit, proposals
from inductoscope.server.features.fixes import code as codes
from inductoscope.server.features.fixes.facts import Facts
from inductoscope.server.features.fixes.model import Proposal
from inductoscope.server.features.fixes.problem import Problem
from inductoscope.server.positions import Text

PATH = "/w/model.py"


def apply(text: str, edits: Iterable[Edit]) -> str:
    """The text after the edits, which count in the text before them, as LSP says."""
    starts = [0]
    for line in Text(text).lines:
        end = starts[-1] + len(line)
        starts.append(end + (2 if text[end : end + 2] == "\r\n" else 1))
    for edit in reversed(sorted(edits, key=lambda item: (item.start, item.end))):  # noqa: C413 (keeps the order of equals)
        first, last = starts[edit.line - 1] + edit.column, starts[edit.end_line - 1] + edit.end_column
        text = text[:first] + edit.text + text[last:]
    return text


def finding_at(text: str, marked: str, code: str = "graph-break", **more: Any) -> Finding:
    """A finding that marks the first `marked` in the text."""
    start = text.index(marked)
    before, through = (Text(part).lines for part in (text[:start], text[: start + len(marked)]))
    span = (len(before), len(before[-1]), len(through), len(through[-1]))
    return Finding(code, Severity.WARNING, PATH, *span, more.pop("message", "made up"), Rung.CAPTURE, **more)


def offered(text: str, finding: Finding, facts: Facts | None = None) -> list[tuple[str, Proposal]]:
    """The names of the causes that know the finding, with what they propose."""
    code = codes.read(text, PATH)
    assert code is not None, "the text is no Python"
    problem = Problem(code, finding, facts or Facts())
    return [(cause.name, proposal) for cause, proposal in proposals(problem)]


def rewritten(text: str, finding: Finding, title: str, facts: Facts | None = None) -> str:
    """The text after the fix whose title holds `title`; it still is Python."""
    found = [proposal for _, proposal in offered(text, finding, facts)]
    (fix,) = [proposal for proposal in found if title in proposal.title and proposal.disabled is None]
    after = apply(text, fix.edits)
    ast.parse(after.removeprefix("\ufeff"))
    return after


def reasons(text: str, finding: Finding, facts: Facts | None = None) -> list[str]:
    """Why known patterns cannot be rewritten."""
    return [proposal.disabled for _, proposal in offered(text, finding, facts) if proposal.disabled is not None]
