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
import enum
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, TypeVar

PREFIX = "inductoscope:"

T = TypeVar("T")

# Short name -> the name of the torch dtype.
_SHORT = {
    "f16": "float16",
    "bf16": "bfloat16",
    "f32": "float32",
    "f64": "float64",
    "f8e4m3": "float8_e4m3fn",
    "f8e5m2": "float8_e5m2",
    "i8": "int8",
    "i16": "int16",
    "i32": "int32",
    "i64": "int64",
    "u8": "uint8",
    "u16": "uint16",
    "u32": "uint32",
    "u64": "uint64",
    "bool": "bool",
    "c32": "complex32",
    "c64": "complex64",
    "c128": "complex128",
}
# torch's own second names for a dtype.
_ALIASES = {
    "half": "float16",
    "float": "float32",
    "double": "float64",
    "short": "int16",
    "int": "int32",
    "long": "int64",
    "chalf": "complex32",
    "cfloat": "complex64",
    "cdouble": "complex128",
    "float8_e4m3fnuz": "float8_e4m3fnuz",
    "float8_e5m2fnuz": "float8_e5m2fnuz",
}
DTYPES: dict[str, str] = {**_SHORT, **{name: name for name in _SHORT.values()}, **_ALIASES}
_SHORT_OF = {name: short for short, name in _SHORT.items()}
_NAMED_VALUES: dict[str, object] = {
    "True": True,
    "False": False,
    "None": None,
    "inf": float("inf"),
    "nan": float("nan"),
}


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
class Dim:
    """One dimension; `varies` when a `*` asks for a second size."""

    size: int
    varies: bool = False


@dataclass(frozen=True)
class TensorSpec:
    """A tensor of random values; `dtype` is torch's own name (`float32`)."""

    dtype: str
    dims: tuple[Dim, ...]


@dataclass(frozen=True)
class LiteralSpec:
    """A Python string, number, boolean or None."""

    value: object


class Container(enum.Enum):
    """Which Python sequence a bracket makes."""

    LIST = "list"
    TUPLE = "tuple"


@dataclass(frozen=True)
class SequenceSpec:
    """A list or tuple of values, tensors among them."""

    container: Container
    items: tuple[ValueSpec, ...]


@dataclass(frozen=True)
class DictSpec:
    """A dictionary with literal keys."""

    entries: tuple[tuple[LiteralSpec, ValueSpec], ...]


ValueSpec: TypeAlias = "TensorSpec | LiteralSpec | SequenceSpec | DictSpec"


@dataclass(frozen=True)
class Argument:
    """One argument of a call, by position when it has no name."""

    value: ValueSpec
    name: str | None = None


@dataclass(frozen=True)
class CallSpec:
    """One set of arguments: positional ones first."""

    arguments: tuple[Argument, ...]


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
        tokens = list(_tokens(text))
    except InputSpecError:
        return False
    depth = sum((token.text in "([{") - (token.text in ")]}") for token in tokens if token.kind == "op")
    return depth > 0 or (bool(tokens) and tokens[-1].text == ",")


def parse(text: str) -> tuple[CallSpec, ...]:
    """The argument sets that `text` (without the prefix) asks for, at least one.  Raises `InputSpecError`."""
    return _Parser(text).sets()


def expand(sets: Sequence[CallSpec]) -> tuple[CallSpec, ...]:
    """`sets` with one more set after each for every size marked with `*`, that size doubled.

    Marked dimensions of one size vary together: they are one batch, wherever it shows up.
    """
    expanded: list[CallSpec] = []
    for one in sets:
        expanded.append(one)
        sizes = dict.fromkeys(dim.size for argument in one.arguments for dim in _dims(argument.value) if dim.varies)
        expanded.extend(_varied(one, size) for size in sizes)
    return tuple(expanded)


def tensor_text(dtype: str, sizes: Sequence[object]) -> str:
    """A tensor as the language writes it: `f32[4, 128]`.  `dtype` may be torch's `torch.float32`."""
    name = dtype.removeprefix("torch.")
    return f"{_SHORT_OF.get(name, name)}[{', '.join(map(str, sizes))}]"


def render(sets: Sequence[CallSpec]) -> str:
    """The text that `parse` reads back as `sets`."""
    return "; ".join(render_call(one) for one in sets)


def render_call(one: CallSpec) -> str:
    """The text of one argument set."""
    return ", ".join(
        f"{argument.name}={render_value(argument.value)}" if argument.name else render_value(argument.value)
        for argument in one.arguments
    )


def render_value(value: ValueSpec) -> str:
    """The text of one value."""
    if isinstance(value, TensorSpec):
        return tensor_text(value.dtype, [f"{dim.size}{'*' if dim.varies else ''}" for dim in value.dims])
    if isinstance(value, LiteralSpec):
        return repr(value.value)
    if isinstance(value, DictSpec):
        return "{" + ", ".join(f"{render_value(key)}: {render_value(item)}" for key, item in value.entries) + "}"
    items = ", ".join(map(render_value, value.items))
    if value.container is Container.LIST:
        return f"[{items}]"
    return f"({items},)" if len(value.items) == 1 else f"({items})"


def _dims(value: ValueSpec) -> Iterator[Dim]:
    if isinstance(value, TensorSpec):
        yield from value.dims
    elif isinstance(value, SequenceSpec):
        for item in value.items:
            yield from _dims(item)
    elif isinstance(value, DictSpec):
        for _, item in value.entries:
            yield from _dims(item)


def _varied(one: CallSpec, size: int) -> CallSpec:
    other = 2 * size if size else 2

    def vary(value: ValueSpec) -> ValueSpec:
        if isinstance(value, TensorSpec):
            dims = (Dim(other) if dim.varies and dim.size == size else Dim(dim.size) for dim in value.dims)
            return replace(value, dims=tuple(dims))
        if isinstance(value, SequenceSpec):
            return replace(value, items=tuple(map(vary, value.items)))
        if isinstance(value, DictSpec):
            return DictSpec(tuple((key, vary(item)) for key, item in value.entries))
        return value

    return CallSpec(tuple(replace(argument, value=vary(argument.value)) for argument in one.arguments))


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


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    line: int
    column: int


def _tokens(text: str) -> Iterator[_Token]:
    position = line = start = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            bad = text[position]
            what = "this string is not closed" if bad in "'\"" else f"{bad!r} has no meaning here"
            raise InputSpecError(what, line, position - start)
        kind = match.lastgroup or ""
        if kind != "space":
            yield _Token(kind, match.group(), line, position - start)
        position = match.end()
        if kind == "newline":
            line, start = line + 1, position


def _layout(tokens: Iterator[_Token]) -> list[_Token]:
    """`tokens` with each new line that ends a set turned into `;` and the others dropped."""
    laid: list[_Token] = []
    depth = 0
    for token in tokens:
        if token.kind == "op":
            depth += (token.text in "([{") - (token.text in ")]}")
        if token.kind != "newline":
            laid.append(token)
        elif depth <= 0 and laid and laid[-1].text not in (",", ";"):
            laid.append(replace(token, kind="op", text=";"))
    return laid


class _Parser:
    def __init__(self, text: str) -> None:
        self._tokens = _layout(_tokens(text))
        self._next = 0
        lines = text.split("\n")
        self._end = _Token("end", "", len(lines) - 1, len(lines[-1]))

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
        self._next += 1
        return Dim(int(token.text), varies=self._take("*"))

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
            value = value + self._signed()
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

    def _evaluate(self, token: _Token) -> object:
        try:
            return ast.literal_eval(token.text)
        except (ValueError, SyntaxError):
            raise InputSpecError(f"{token.text} is no Python literal", token.line, token.column) from None

    def _peek(self, ahead: int = 0) -> _Token:
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
