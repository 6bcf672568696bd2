"""Reading what torch writes about a graph break.

The layout is that of `format_graph_break_message` in torch/_dynamo/exc.py (2.8 to 2.15): a line with the type, an
`Explanation:`, any number of `Hint:` lines, a `Developer debug context:`.  A break that led to another is written
first, with a line of asterisks between the two.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from inductoscope.protocol.report import Outcome

_CHAINED = re.compile(r"\n+\*\*\* While handling this graph break, another graph break occurred: \*\*\*\n+")
_EXPLANATION = re.compile(r"^  Explanation: (.*?)(?=^  Hint: |^  Developer debug context: |\Z)", re.M | re.S)
_HINT = re.compile(r"^  Hint: (.*?)(?=^  Hint: |^  Developer debug context: |\Z)", re.M | re.S)
_FROM_USER = re.compile(r"\n\s*(from user code:|Set TORCHDYNAMO_VERBOSE|For more details about this graph break)")

# First words of the reason (torch/_dynamo/symbolic_convert.py, 2.6 to 2.15).
_REST = "Encountered graph break that we cannot resume from"
_FUNCTION = "Failed to handle graph break gracefully"


@dataclass(frozen=True)
class BreakText:
    """One graph break in torch's words."""

    kind: str
    explanation: str
    hints: tuple[str, ...]


def outcome_of(reason: str) -> Outcome:
    """What Dynamo does after a break, by the first words of its reason."""
    if reason.startswith(_FUNCTION):
        return Outcome.FUNCTION_EAGER
    if reason.startswith(_REST):
        return Outcome.REST_EAGER
    return Outcome.SPLIT


def read_breaks(text: str) -> tuple[BreakText, ...]:
    """The chain of breaks in the message of one exception: the cause first, what it led to after it."""
    return tuple(_read_one(part) for part in _CHAINED.split(text))


def ended(text: str) -> str:
    """The text as a sentence: on one line, with a mark at its end."""
    text = " ".join(text.split())
    return text if not text or text[-1] in ".!?…" else f"{text}."


def _read_one(text: str) -> BreakText:
    text = _FROM_USER.split(text)[0]
    explanation = _EXPLANATION.search(text)
    return BreakText(
        kind=text.strip().splitlines()[0].strip() if text.strip() else "",
        explanation=_joined(explanation.group(1)) if explanation else "",
        hints=tuple(_joined(hint) for hint in _HINT.findall(text)),
    )


def _joined(text: str) -> str:
    """Undo the indentation that torch puts before continued lines."""
    return "\n".join(line.removeprefix("    ") for line in text.strip().splitlines())
