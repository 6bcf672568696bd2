"""The language of the `# inductoscope:` comment: what to call a target with.

    # inductoscope: x=f32[4, 128, 256], mask=bool[4, 128]; x=f32[8*, 128, 256], mask=None

    sets     = set (";" set)*                      a new line separates sets too, except after "," and inside brackets
    set      = argument ("," argument)*
    argument = [NAME "="] value
    value    = tensor | literal | "(" values ")" | "[" values "]" | "{" entries "}"
    tensor   = DTYPE "[" [size ("," size)*] "]"    f32[] is a tensor without dimensions
    size     = INTEGER ["*"]                       "*" marks a dimension to vary

Literals are Python's strings, numbers, True, False and None, and also `inf` and `nan`.  The scan reads this in the
server, the worker makes values of it; this module knows neither torch nor the Python syntax around the comment.
"""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from inductoscope.protocol.input_tokens import InputSpecError, Token, lay_out, tokenize
from inductoscope.protocol.input_values import (
    DTYPES,
    Argument,
    CallSpec,
    Container,
    DictSpec,
    Dim,
    LiteralSpec,
    SequenceSpec,
    TensorSpec,
    ValueSpec,
    expand,
    render,
    render_call,
    render_value,
    tensor_text,
)

__all__ = [
    "DTYPES",
    "PREFIX",
    "Argument",
    "CallSpec",
    "Comment",
    "Container",
    "DictSpec",
    "Dim",
    "InputSpecError",
    "LiteralSpec",
    "SequenceSpec",
    "TensorSpec",
    "ValueSpec",
    "expand",
    "find_comment",
    "parse",
    "render",
    "render_call",
    "render_value",
    "tensor_text",
]

DEEPEST = 50
"""How deep values may be nested; a parser that calls itself must not run into Python's limit."""

LARGEST_SIZE = 2**63 - 1
"""Sizes are 64-bit signed integers in torch."""

PREFIX = "inductoscope:"

T = TypeVar("T")

_NAMED_VALUES: dict[str, object] = {
    "True": True,
    "False": False,
    "None": None,
    "inf": float("inf"),
    "nan": float("nan"),
}


@dataclass(frozen=True)
class Comment:
    """The inputs text found in the comment lines above a definition.

    `origins` gives, for each line of `text`, the index of the comment line it stands on and the column it starts at.
    """

    text: str
    origins: tuple[tuple[int, int], ...]

    def place(self, error: InputSpecError) -> tuple[int, int]:
        """Index of the comment line and column in it that `error` is about."""
        index, start = self.origins[error.line]
        return index, start + error.column


_COMMENT = re.compile(r"\s*#\s*inductoscope:[ \t]*(?P<text>.*?)\s*\Z")
_PLAIN_COMMENT = re.compile(r"\s*#[ \t]*(?P<text>.*?)\s*\Z")


def find_comment(lines: Sequence[str]) -> Comment | None:
    """The inputs comment among the comment lines above one definition, or None.

    Lines with the prefix join.  A plain comment line belongs to them when the line before it plainly goes on: it ends
    in a comma or has an open bracket.
    """
    texts: list[str] = []
    origins: list[tuple[int, int]] = []
    for index, line in enumerate(lines):
        match = _COMMENT.match(line)
        if match is None and texts and _goes_on("\n".join(texts)):
            match = _PLAIN_COMMENT.match(line)
        if match is not None:
            texts.append(match["text"])
            origins.append((index, match.start("text")))
    return Comment("\n".join(texts), tuple(origins)) if texts else None


def _goes_on(text: str) -> bool:
    try:
        tokens = list(tokenize(text))
    except InputSpecError:
        return False
    return sum(token.nesting for token in tokens) > 0 or (bool(tokens) and tokens[-1].text == ",")


def parse(text: str) -> tuple[CallSpec, ...]:
    """The argument sets that `text` (without the prefix) asks for, at least one.  Raises `InputSpecError`."""
    return _Parser(text).sets()


class _Parser:
    def __init__(self, text: str) -> None:
        self._tokens = lay_out(tokenize(text))
        self._next = 0
        self._depth = 0
        lines = text.split("\n")
        self._end = Token("end", "", len(lines) - 1, len(lines[-1]))

    def sets(self) -> tuple[CallSpec, ...]:
        sets: list[CallSpec] = []
        while self._peek().kind != "end":
            if self._take(";"):
                continue
            sets.append(self._call())
            if self._peek().kind != "end" and not self._take(";"):
                raise self._error(f"expected ',' or ';' before {self._peek().text!r}")
        if not sets:
            raise self._error("no inputs are given; write for example x=f32[4, 128]")
        return tuple(sets)

    def _call(self) -> CallSpec:
        arguments = [self._argument(())]
        while self._take(","):
            if self._peek().kind == "end" or self._peek().text == ";":
                break
            arguments.append(self._argument(arguments))
        return CallSpec(tuple(arguments))

    def _argument(self, before: Sequence[Argument]) -> Argument:
        first = self._peek()
        if first.kind == "name" and self._peek(1).text == "=":
            if not first.text.isidentifier() or first.text in _NAMED_VALUES:
                raise self._error(f"{first.text!r} cannot be the name of an argument")
            if any(argument.name == first.text for argument in before):
                raise self._error(f"argument {first.text!r} is given twice")
            self._next += 2
            return Argument(self._value(), first.text)
        if any(argument.name for argument in before):
            raise self._error("an argument without a name cannot follow one with a name")
        return Argument(self._value())

    def _value(self) -> ValueSpec:
        if self._depth == DEEPEST:
            raise self._error(f"values are nested more than {DEEPEST} deep")
        self._depth += 1
        try:
            return self._value_at_depth()
        finally:
            self._depth -= 1

    def _value_at_depth(self) -> ValueSpec:
        token = self._peek()
        if token.kind == "name" and token.text not in _NAMED_VALUES:
            return self._tensor()
        if self._take("["):
            return SequenceSpec(Container.LIST, self._items("]"))
        if self._take("("):
            return self._parenthesis()
        if self._take("{"):
            return DictSpec(self._until("}", self._entry))
        return self._literal()

    def _parenthesis(self) -> ValueSpec:
        items = self._items(")")
        closed_after_comma = len(items) == 1 and self._tokens[self._next - 2].text == ","
        if len(items) == 1 and not closed_after_comma:
            return items[0]
        return SequenceSpec(Container.TUPLE, items)

    def _items(self, closing: str) -> tuple[ValueSpec, ...]:
        return self._until(closing, self._value)

    def _entry(self) -> tuple[LiteralSpec, ValueSpec]:
        key = self._key()
        self._expect(":")
        return key, self._value()

    def _key(self) -> LiteralSpec:
        if not self._take("("):  # Python writes complex numbers in parentheses
            return self._literal()
        key = self._literal()
        self._expect(")")
        return key

    def _until(self, closing: str, element: Callable[[], T]) -> tuple[T, ...]:
        elements: list[T] = []
        while not self._take(closing):
            elements.append(element())
            if not self._take(","):
                self._expect(closing)
                break
        return tuple(elements)

    def _tensor(self) -> TensorSpec:
        token = self._peek()
        dtype = DTYPES.get(token.text.removeprefix("torch."))
        if dtype is None:
            raise self._error(f"{token.text!r} is no dtype{_nearest(token.text)}")
        self._next += 1
        if self._peek().text != "[":
            raise self._error(f"expected sizes after {token.text}, such as {token.text}[4, 128]")
        self._next += 1
        return TensorSpec(dtype, self._until("]", self._dim))

    def _dim(self) -> Dim:
        token = self._peek()
        if token.kind != "number" or not token.text.replace("_", "").isdecimal():
            raise self._error(f"expected a size (a whole number), found {token.text!r}")
        size = self._evaluate(token)
        if not isinstance(size, int) or size > LARGEST_SIZE:
            raise self._error(f"the size {token.text} is over the largest that a tensor can have ({LARGEST_SIZE})")
        self._next += 1
        return Dim(size, varies=self._take("*"))

    def _literal(self) -> LiteralSpec:
        token = self._peek()
        if token.kind == "string":
            self._next += 1
            return LiteralSpec(self._evaluate(token))
        if token.kind == "name" and token.text in _NAMED_VALUES:
            self._next += 1
            return LiteralSpec(_NAMED_VALUES[token.text])
        if token.kind == "number" or token.text in ("+", "-"):
            return LiteralSpec(self._number())
        raise self._error(f"expected a value, found {token.text!r}" if token.text else "a value is missing at the end")

    def _number(self) -> complex | float | int:
        value = self._signed()
        if self._peek().text in ("+", "-"):
            try:
                value = value + self._signed()
            except OverflowError:
                raise self._error("this number is too large") from None
        return value

    def _signed(self) -> complex | float | int:
        sign = -1 if self._take("-") else 1
        if sign > 0:
            self._take("+")
        token = self._peek()
        if token.text in ("inf", "nan"):
            self._next += 1
            return sign * float(token.text)
        if token.kind != "number":
            raise self._error(f"expected a number, found {token.text!r}")
        self._next += 1
        value = self._evaluate(token)
        if not isinstance(value, int | float | complex):
            raise self._error(f"{token.text!r} is no number")
        return sign * value

    def _evaluate(self, token: Token) -> object:
        try:
            return ast.literal_eval(token.text)
        except (ValueError, SyntaxError):
            raise InputSpecError(f"{token.text} is no Python literal", token.line, token.column) from None

    def _peek(self, ahead: int = 0) -> Token:
        index = self._next + ahead
        return self._tokens[index] if index < len(self._tokens) else self._end

    def _take(self, op: str) -> bool:
        token = self._peek()
        found = token.kind == "op" and token.text == op
        self._next += found
        return found

    def _expect(self, op: str) -> None:
        if not self._take(op):
            found = self._peek().text
            raise self._error(f"expected {op!r} before {found!r}" if found else f"{op!r} is missing at the end")

    def _error(self, message: str) -> InputSpecError:
        token = self._peek()
        return InputSpecError(message, token.line, token.column)


def _nearest(name: str) -> str:
    close = difflib.get_close_matches(name, DTYPES, n=1)
    return f"; did you mean {close[0]}?" if close else "; use f32, bf16, i64, bool or another torch dtype"
