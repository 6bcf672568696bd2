"""Text for people as blocks, written as Markdown or as plain text by what a client can show."""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias


class Markup(enum.Enum):
    """Forms of text, by their LSP names."""

    MARKDOWN = "markdown"
    PLAIN = "plaintext"


@dataclass(frozen=True)
class Heading:
    """The first line of a card."""

    text: str


@dataclass(frozen=True)
class Words:
    """A paragraph."""

    text: str


@dataclass(frozen=True)
class Points:
    """A list."""

    items: tuple[str, ...]


@dataclass(frozen=True)
class Code:
    """Source text."""

    language: str
    text: str


@dataclass(frozen=True)
class Link:
    """A link to a web page."""

    text: str
    target: str


@dataclass(frozen=True)
class Links:
    """Documents to go to from here."""

    items: tuple[Link, ...]


@dataclass(frozen=True)
class Note:
    """A remark, less loud than the rest."""

    text: str


Block: TypeAlias = "Heading | Words | Points | Code | Link | Links | Note"

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~])")


def write(blocks: Iterable[Block], markup: Markup) -> str:
    """The text of the blocks."""
    write_one = _markdown if markup is Markup.MARKDOWN else _plain
    return "\n\n".join(write_one(block) for block in blocks)


def _markdown(block: Block) -> str:
    match block:
        case Heading(text):
            return f"**{_escaped(text)}**"
        case Words(text):
            # Torch indents parts of its texts, which Markdown would take for code.
            lines = (line.strip() for line in text.strip().split("\n"))
            return "  \n".join(_escaped(line) for line in lines if line)
        case Points(items):
            return "\n".join(f"- {_escaped(' '.join(item.split()))}" for item in items)
        case Code(language, text):
            fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
            return f"{fence}{language}\n{text}\n{fence}"
        case Link(text, target):
            return f"[{_escaped(text)}]({target.replace(' ', '%20').replace(')', '%29')})"
        case Links(items):
            return " | ".join(map(_markdown, items))
        case Note(text):
            return f"_{_escaped(text)}_"


def _plain(block: Block) -> str:
    match block:
        case Heading(text) | Words(text) | Code(_, text) | Note(text):
            return text
        case Points(items):
            return "\n".join(f"- {' '.join(item.split())}" for item in items)
        case Link(text, target):
            return f"{text}: {target}"
        case Links(items):
            return "\n".join(map(_plain, items))


def _escaped(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", text)
