"""The words of the inputs comment, with their places.  Knows nothing of what they mean together."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace


class InputSpecError(ValueError):
    """The text of an inputs comment makes no sense.

    `line` is the 0-based line of that text and `column` the 0-based code point in the line; the message is a sentence
    without either.
    """

    def __init__(self, message: str, line: int, column: int) -> None:
        super().__init__(message)
        self.line = line
        self.column = column


@dataclass(frozen=True)
class Token:
    """A word: its sort (`string`, `number`, `name`, `op`, `newline`, `end`), its text, its 0-based line and column."""

    kind: str
    text: str
    line: int
    column: int

    @property
    def nesting(self) -> int:
        """1 for an opening bracket, -1 for a closing one, else 0."""
        return (self.text in ("(", "[", "{")) - (self.text in (")", "]", "}")) if self.kind == "op" else 0


_TOKEN = re.compile(
    r"""
    (?P<space>[^\S\n]+)
  | (?P<newline>\n)
  | (?P<string>(?:[rR]|[bB]|[uU]|[rR][bB]|[bB][rR])?(?:'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"))
  | (?P<number>\.?\d(?:[\w.]|(?<=[eE])[+-](?=\d))*)
  | (?P<name>[^\W\d]\w*(?:\.[^\W\d]\w*)*)
  | (?P<op>[\[\](){},;:=*+-])
    """,
    re.VERBOSE,
)


def tokenize(text: str) -> Iterator[Token]:
    """The words of `text`, new lines included.  Raises `InputSpecError`."""
    position = line = start = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            bad = text[position]
            what = "this string is not closed" if bad in "'\"" else f"{bad!r} has no meaning here"
            raise InputSpecError(what, line, position - start)
        kind = match.lastgroup or ""
        if kind != "space":
            yield Token(kind, match.group(), line, position - start)
        position = match.end()
        if kind == "newline":
            line, start = line + 1, position


def lay_out(tokens: Iterator[Token]) -> list[Token]:
    """`tokens` with each new line that ends a set turned into `;` and the others dropped."""
    laid: list[Token] = []
    depth = 0
    for token in tokens:
        depth += token.nesting
        if token.kind != "newline":
            laid.append(token)
        elif depth <= 0 and laid and laid[-1].text not in (",", ";"):
            laid.append(replace(token, kind="op", text=";"))
    return laid
