"""The page of each finding code: `docs/diagnostics/<code>.md`, which travels with the package."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_MARKS = re.compile(r"[*`]")


@dataclass(frozen=True)
class Page:
    """A page as Markdown, and its first paragraph as plain text."""

    markdown: str
    summary: str


def page(code: str) -> Page | None:
    """The page of a code, None where it did not come along."""
    installed = resources.files("inductoscope.server") / "pages" / f"{code}.md"
    checkout = Path(__file__).parents[3] / "docs" / "diagnostics" / f"{code}.md"
    for place in (installed, checkout):
        if place.is_file():
            return _read(place.read_text(encoding="utf-8"))
    return None


def _read(text: str) -> Page:
    _, _, body = text.partition("\n\n")
    first, _, _ = body.strip().partition("\n\n")
    return Page(text.strip(), plain(first))


def plain(markdown: str) -> str:
    """A paragraph without its marks, on one line."""
    return " ".join(_MARKS.sub("", _LINK.sub(r"\1", markdown)).split())
