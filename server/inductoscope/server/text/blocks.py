"""The few building blocks of text output: paragraphs with a hanging indent, and code that is never wrapped."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import TypeVar

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.padding import Padding
from rich.segment import Segment
from rich.text import Text

T = TypeVar("T", bound=Hashable)

_NO_LIMIT = 1_000_000


class Code:
    """Lines that are neither wrapped nor cropped, so that they can be copied; the console must not crop either."""

    def __init__(self, text: Text, indent: int = 0) -> None:
        self._text = text
        self._indent = indent

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        wide = options.update(width=_NO_LIMIT, no_wrap=True, overflow="ignore")
        for line in self._text.split("\n"):
            yield Segment(" " * self._indent)
            yield from console.render(line, wide)


def gap() -> RenderableType:
    """An empty line."""
    return Text("")


def indented(content: RenderableType, indent: int = 2) -> RenderableType:
    """Something moved to the right, wrapped lines too."""
    return Padding(content, (0, 0, 0, indent), expand=False)


def paragraph(text: str, style: str = "", indent: int = 4) -> RenderableType:
    """Running text."""
    return indented(Text(text, style), indent)


def counted(items: Iterable[T]) -> Iterator[tuple[T, int]]:
    """Different items in order of appearance, with how often each occurs."""
    counts: dict[T, int] = {}
    for item in items:
        counts[item] = counts.get(item, 0) + 1
    yield from counts.items()
