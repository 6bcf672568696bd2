"""What a quick fix is: edits of one text, what they are for, and whether the program still does the same afterwards."""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace

from inductoscope.server.diagnostics import Shown


class Equivalence(enum.Enum):
    """Whether the program computes the same after the edit as before."""

    SAME = "same"
    CHANGES_BEHAVIOUR = "changes behaviour"


@dataclass(frozen=True, order=True)
class Edit:
    """Put `text` in place of what stands from (`line`, `column`) to (`end_line`, `end_column`).

    Lines are 1-based, columns code points from 0; where both places are the same the text is inserted there.
    """

    line: int
    column: int
    end_line: int
    end_column: int
    text: str

    @property
    def start(self) -> tuple[int, int]:
        """Where the replaced text begins."""
        return (self.line, self.column)

    @property
    def end(self) -> tuple[int, int]:
        """Where the replaced text ends."""
        return (self.end_line, self.end_column)


@dataclass(frozen=True)
class Proposal:
    """What a cause makes of a finding: edits, or in `disabled` the sentence that says why there are none."""

    title: str
    edits: tuple[Edit, ...] = ()
    equivalence: Equivalence = Equivalence.CHANGES_BEHAVIOUR
    disabled: str | None = None


@dataclass(frozen=True)
class Fix:
    """A proposal for a file; `cause` is the name of its section in docs/fixes.md, `preferred` what LSP means by it.

    `complete` is false for an edit that the user has to go on writing.
    """

    title: str
    path: str
    edits: tuple[Edit, ...]
    answers: tuple[Shown, ...]
    cause: str
    equivalence: Equivalence
    disabled: str | None = None
    preferred: bool = False
    complete: bool = True


def same(title: str, *edits: Edit) -> Proposal:
    """An edit after which the program certainly computes what it did."""
    return Proposal(title, _in_order(edits), Equivalence.SAME)


def changes(title: str, *edits: Edit) -> Proposal:
    """An edit after which the program does something else, at least in some cases, which the title names."""
    return Proposal(f"Changes behaviour: {title}", _in_order(edits))


def _in_order(edits: tuple[Edit, ...]) -> tuple[Edit, ...]:
    """In the order of the text, each once; what is inserted at one place is one edit, imports first."""
    kept: list[Edit] = []
    for edit in sorted(set(edits), key=lambda item: (item.start, item.end, not _is_import(item))):
        if kept and edit.start == edit.end == kept[-1].start == kept[-1].end:
            kept[-1] = replace(edit, text=kept[-1].text + edit.text)
        else:
            kept.append(edit)
    return tuple(kept)


def _is_import(edit: Edit) -> bool:
    return edit.text.startswith(("import ", "from "))


def refused(title: str, reason: str) -> Proposal:
    """A pattern that is known, at a place where it cannot be rewritten safely."""
    return Proposal(title, disabled=reason)


def words(*lines: str) -> frozenset[str]:
    """The words of some lines: for long tables of names."""
    return frozenset(word for line in lines for word in line.split())
