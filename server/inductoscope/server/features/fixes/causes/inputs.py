"""No example inputs are known: write the comment that the scan proposes."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from inductoscope.server.features.fixes.model import Proposal, same
from inductoscope.server.features.fixes.problem import Problem


def propose(problem: Problem) -> Iterator[Proposal]:
    """The proposed comment above the definition and its decorators."""
    finding, code = problem.finding, problem.code
    if not finding.hints:
        return
    for node in ast.walk(code.tree):
        if isinstance(node, ast.stmt) and node.lineno == finding.line:
            title = "Write a comment with example inputs (put the sizes right afterwards)"
            yield same(title, code.before(node, finding.hints[0]))
            return
