"""Lines of a text, and columns in the units of whoever counts.

Inside the server a column is a number of code points.  Editors count UTF-8, UTF-16 or UTF-32 code units, as agreed at
the start of a session.  Only the way to the editor is needed: whatever an editor asks for, it asks for by line.  A line
ends at LF, CRLF or CR and nowhere else, as LSP says (`str.splitlines` also splits at form feeds and other characters).
Lines are 1-based.
"""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass
from functools import cached_property

_LINE_END = re.compile(r"\r\n|\n|\r")


class Encoding(enum.Enum):
    """The unit in which the client counts columns; the values are those of LSP."""

    UTF8 = "utf-8"
    UTF16 = "utf-16"
    UTF32 = "utf-32"

    def units(self, char: str) -> int:
        """How many units one code point takes."""
        point = ord(char)
        if self is Encoding.UTF32:
            return 1
        if self is Encoding.UTF16:
            return 2 if point > 0xFFFF else 1
        return 1 + (point > 0x7F) + (point > 0x7FF) + (point > 0xFFFF)


def to_client(line: str, column: int, encoding: Encoding) -> int:
    """The client's column of code point `column` in `line`; a column past the end of the line is its end."""
    if line.isascii():
        return min(max(column, 0), len(line))
    return sum(map(encoding.units, line[: max(column, 0)]))


@dataclass(frozen=True)
class Text:
    """A text and its lines, without their ends."""

    source: str

    @cached_property
    def lines(self) -> tuple[str, ...]:
        """All lines; a text that ends with a line end has an empty last line, as editors show it."""
        return tuple(_LINE_END.split(self.source))

    def line(self, number: int) -> str:
        """Line `number`, counted from 1; empty outside of the text."""
        return self.lines[number - 1] if 1 <= number <= len(self.lines) else ""
