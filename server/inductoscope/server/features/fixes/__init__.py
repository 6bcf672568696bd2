"""Edits that answer findings.

Every one says what it does; one after which the program may do something else begins with "Changes behaviour".  A
pattern that is known but cannot be rewritten safely is offered as disabled, with the reason.  Texts are read as syntax
trees only; a finding whose text changed since the run gets no fix.

`causes/` knows what could be written instead, one module for each cause; `registry` which finding each is asked about.
"""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterable, Iterator

from inductoscope.server import diagnostics
from inductoscope.server.diagnostics import Shown
from inductoscope.server.features.fixes import code as codes
from inductoscope.server.features.fixes import facts, model
from inductoscope.server.features.fixes.code import Code
from inductoscope.server.features.fixes.model import Edit, Equivalence, Fix, Proposal
from inductoscope.server.features.fixes.problem import Problem
from inductoscope.server.features.fixes.registry import CAUSES, Cause
from inductoscope.server.snapshot import Snapshot

__all__ = ["Edit", "Equivalence", "Fix", "all_safe", "fixes", "proposals"]


def fixes(snapshot: Snapshot, path: str, first: int, last: int) -> tuple[Fix, ...]:
    """The fixes for what is shown on lines `first` to `last` of an open file; each title once for a finding."""
    return _together(_found(snapshot, path, range(first, last + 1), CAUSES))


def all_safe(snapshot: Snapshot, path: str) -> tuple[Fix, ...]:
    """For each cause that can be dealt with without changing what the program does: one fix for the whole file."""
    document = snapshot.documents.get(path)
    last = len(document.text.lines) if document else 0
    by_cause: dict[str, list[Fix]] = {}
    safe = [cause for cause in CAUSES if cause.certain and cause.complete]
    for fix in _together(_found(snapshot, path, range(1, last + 1), safe)):
        if fix.preferred:
            by_cause.setdefault(fix.cause, []).append(fix)
    return tuple(_merged(cause, found) for cause, found in by_cause.items())


def proposals(problem: Problem, causes: Iterable[Cause] = CAUSES) -> Iterator[tuple[Cause, Proposal]]:
    """What the causes make of one finding."""
    for cause in causes:
        if problem.finding.code in cause.codes:
            for proposal in cause.propose(problem):
                yield cause, _checked(problem.code, proposal)


def compatible(found: Iterable[Fix]) -> tuple[Edit, ...]:
    """The edits of fixes, without those that another one makes already or that change the same text."""
    kept: list[Edit] = []
    for fix in found:
        new = [edit for edit in fix.edits if edit not in kept]
        if not any(_collide(edit, other) for edit in new for other in kept):
            kept += new
    return tuple(sorted(kept, key=lambda edit: edit.start))


def _checked(code: Code, proposal: Proposal) -> Proposal:
    """The proposal, or why not: a comment would get lost by it, or it would reach into a formatted text."""
    if any(_is_in_text(code, edit) for edit in proposal.edits):
        return model.refused(proposal.title, "It stands inside of a formatted text: put it into a name first.")
    written = "".join(edit.text for edit in proposal.edits)
    lost = [
        comment.text
        for comment in code.comments
        for edit in proposal.edits
        if edit.start <= (comment.line, comment.column) < edit.end and comment.text not in written
    ]
    if not lost:
        return proposal
    return model.refused(proposal.title, f"The comment `{lost[0]}` inside would be lost: move it above first.")


def _is_in_text(code: Code, edit: Edit) -> bool:
    """Whether the edit is inside of an f-string, where quotes and positions follow rules of their own."""
    texts = [node for node in code.by_line.get(edit.line, ()) if isinstance(node, ast.JoinedStr)]
    return any(code.start(text) < edit.start and edit.end < code.end(text) for text in texts)


def _found(snapshot: Snapshot, path: str, lines: range, causes: Iterable[Cause]) -> Iterator[Fix]:
    """The fixes for each finding on these lines."""
    document = snapshot.documents.get(path)
    here = [shown for shown in diagnostics.merge(snapshot).get(path, ()) if shown.finding.line in lines]
    code = codes.read(document.text.source, path) if document and here else None
    if code is None:
        return
    known = facts.of_file(snapshot, path)
    for shown in here:
        yield from _of_finding(snapshot, Problem(code, shown.finding, known), shown, causes)


def _of_finding(snapshot: Snapshot, problem: Problem, shown: Shown, causes: Iterable[Cause]) -> Iterator[Fix]:
    found = list(proposals(problem, causes))
    made_from = facts.origins(snapshot, shown) if found else None
    preferred = False
    for cause, proposal in found:
        path = shown.finding.file
        if not all(facts.is_current(snapshot, made_from, path, lines) for lines in _read_by(problem, proposal)):
            continue
        safe = proposal.equivalence is Equivalence.SAME and proposal.disabled is None and cause.complete
        yield Fix(
            proposal.title,
            path,
            proposal.edits,
            (shown,),
            cause.name,
            proposal.equivalence,
            proposal.disabled,
            preferred=safe and not preferred,
            complete=cause.complete,
        )
        preferred = preferred or safe


def _read_by(problem: Problem, proposal: Proposal) -> Iterator[tuple[int, int]]:
    """The lines that have to be as the run read them: those of the finding's statement, and all that are replaced."""
    code, statement = problem.code, problem.statement
    end = len(code.source.text.lines)
    for edit in proposal.edits:
        if edit.start != edit.end:
            yield edit.line, min(edit.end_line, end)
    if statement is not None:
        first = code.start(statement)[0]
        yield first, max(first, min(problem.finding.end_line, end))


def _together(found: Iterable[Fix]) -> tuple[Fix, ...]:
    """Fixes that do the same, for several findings or by several causes, as one."""
    merged: dict[tuple[object, ...], Fix] = {}
    for fix in found:
        key = (fix.title, fix.edits, fix.disabled)
        other = merged.get(key)
        answers = fix.answers if other is None else tuple(dict.fromkeys([*other.answers, *fix.answers]))
        preferred = fix.preferred or (other is not None and other.preferred)
        merged[key] = dataclasses.replace(other or fix, answers=answers, preferred=preferred)
    return tuple(merged.values())


def _merged(cause: str, found: list[Fix]) -> Fix:
    titles = dict.fromkeys(fix.title for fix in found)
    title = next(iter(titles)) if len(titles) == 1 else f"{len(titles)} kinds of change"
    answers = tuple(dict.fromkeys(shown for fix in found for shown in fix.answers))
    return dataclasses.replace(found[0], title=title, edits=compatible(found), answers=answers)


def _collide(edit: Edit, other: Edit) -> bool:
    return edit.start < other.end and other.start < edit.end
