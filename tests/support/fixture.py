"""Source text with marks in it.

A name between `<` and `>` in a comment marks its line: `y = f(x)  # <call>`.  The comment stays in the text; tests then
speak of `fixture["call"]` instead of counting lines.
"""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass

_MARK = re.compile(r"#\s*<(\w+)>")


@dataclass(frozen=True)
class Fixture:
    """A text and its marks: line (1-based) by name."""

    source: str
    lines: dict[str, int]

    def __getitem__(self, name: str) -> int:
        return self.lines[name]


def parse(text: str) -> Fixture:
    """The fixture in an indented triple-quoted text.  Raises `ValueError` for a mark that is used twice."""
    source = textwrap.dedent(text).lstrip("\n")
    lines: dict[str, int] = {}
    for number, line in enumerate(source.split("\n"), start=1):
        for name in _MARK.findall(line):
            if name in lines:
                raise ValueError(f"the mark <{name}> is used twice")
            lines[name] = number
    return Fixture(source, lines)
