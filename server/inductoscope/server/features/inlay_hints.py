"""Shapes beside the variables that lines set: what each became when it was last compiled.

Only what Dynamo saw a variable set to is shown, never what a line merely contains.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from inductoscope.protocol.report import ValueFact
from inductoscope.server import words
from inductoscope.server.settings import InlayHints
from inductoscope.server.snapshot import Result, Snapshot, TargetView

MOST_SHOWN = 2
"""Distinct shapes of one variable that are written out; the tooltip has them all."""


@dataclass(frozen=True)
class InlayHint:
    """Text to show after `column` (code points) of a line (1-based)."""

    line: int
    column: int
    label: str
    tooltip: str


def inlay_hints(snapshot: Snapshot, path: str) -> tuple[InlayHint, ...]:
    """The hints of an open file, in the order of its lines; none where they are turned off."""
    document = snapshot.documents.get(path)
    if document is None or snapshot.settings_of(path).inlay_hints is InlayHints.OFF:
        return ()
    texts: dict[tuple[int, str], dict[str, str]] = {}
    for fact, result, view in _named(snapshot, path):
        line = snapshot.now_at(result, path, fact.line)
        if line is not None and fact.name is not None:
            seen = texts.setdefault((line, fact.name), {})
            seen.setdefault(fact.text, f"{fact.text} in {view.target.name}, {words.device(result.report.device)}")
    found = []
    for (line, name), shapes in sorted(texts.items()):
        column = _end_of(name, document.text.line(line))
        if column is not None:
            found.append(InlayHint(line, column, f": {_joined(list(shapes))}", "\n".join(shapes.values())))
    return tuple(found)


def _named(snapshot: Snapshot, path: str) -> Iterator[tuple[ValueFact, Result, TargetView]]:
    """The values of variables in the newest result of each target that has any."""
    for view in snapshot.targets.values():
        result = next((result for result in view.results if result.report.values), None)
        for fact in result.report.values if result is not None else ():
            if result is not None and fact.file == path and fact.name is not None:
                yield fact, result, view


def _end_of(name: str, text: str) -> int | None:
    """Where the first mention of a variable ends, None where there is none."""
    match = re.search(rf"(?<![\w.]){re.escape(name)}(?!\w)", text)
    return match.end() if match else None


def _joined(shapes: list[str]) -> str:
    return " | ".join(shapes[:MOST_SHOWN]) + (" | …" if len(shapes) > MOST_SHOWN else "")
