"""The parts of a generated text: functions, labels and headings as symbols, and what can be folded.

Reads texts line by line, without parsing them: whatever a compiler writes next year still has an outline.  Lines are
1-based.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from inductoscope.server.features.languages import Language
from inductoscope.server.positions import Text


class SymbolKind(enum.Enum):
    """What a part is."""

    FUNCTION = "function"
    CLASS = "class"
    LABEL = "label"
    HEADING = "heading"


@dataclass(frozen=True)
class Symbol:
    """A part from its first to its last line; `line` is where its name stands."""

    name: str
    kind: SymbolKind
    first: int
    last: int
    line: int
    children: tuple[Symbol, ...] = ()


@dataclass(frozen=True)
class Fold:
    """Lines that can be folded into the first of them."""

    first: int
    last: int


_DEFINITION = re.compile(r"(?P<indent> *)(?:async )?(?P<word>def|class) (?P<name>\w+)")
_HEADING = re.compile(r"(?:#+ (?P<title>.+)|\*\*(?P<bold>.+)\*\*)$")
_ESCAPE = re.compile(r"\\(.)")
_CLOSING = (")", "]", "}")

_FUNCTIONS = {
    Language.CPP: re.compile(r"(?P<name>[A-Za-z_]\w*)\s*\("),
    Language.PTX: re.compile(r"(?:\.entry|\.func)\s+(?:\([^)]*\)\s*)?(?P<name>[\w$]+)"),
    Language.LLVM: re.compile(r'^define\b.*?@"?(?P<name>[\w.$]+)"?\('),
    Language.MLIR: re.compile(r'func\b.*?@"?(?P<name>[\w.$]+)"?\('),
}
_LABELS = {
    Language.PTX: re.compile(r"(?P<name>\$L__BB\w+):\s*(?://.*)?$"),  # the others are for debuggers
    Language.LLVM: re.compile(r"(?P<name>[\w.]+):\s*(?:;.*)?$"),
    Language.SASS: re.compile(r"(?P<name>\.[\w.$]+):\s*$"),
    Language.AMDGCN: re.compile(r"(?P<name>\.?[\w.$]+):\s*(?:;.*)?$"),
}
_SECTION = ".text."
_COMMENTS = {
    Language.PYTHON: "#",
    Language.CPP: "//",
    Language.MLIR: "#loc",
    Language.LLVM: "!",
    Language.PTX: "//",
    Language.SASS: "//",
    Language.AMDGCN: ";",
}
_IGNORED = re.compile(r'"(?:[^"\\]|\\.)*"|//.*')
_HEADER_LINES = {Language.CPP: 12, Language.PTX: 200}
"""Lines above an opening brace in which the name of what it opens is looked for; else it is on the same line."""


def symbols(language: Language, text: str) -> tuple[Symbol, ...]:
    """The parts of a text, those inside others as their children."""
    lines = Text(text).lines
    if language is Language.PYTHON:
        return _nested(_definitions(lines))
    if language is Language.MARKDOWN:
        return _nested(_headings(lines))
    found = [*_functions(language, lines), *_labels(language, lines)]
    return _nested(sorted(found, key=lambda one: (one.first, -one.last)))


def folds(language: Language, text: str) -> tuple[Fold, ...]:
    """What can be folded: parts, blocks in braces, and comments of several lines."""
    lines = Text(text).lines
    found = {(one.first, one.last) for one in _flat(symbols(language, text))}
    if language in _FUNCTIONS:
        found |= set(_blocks(lines))
    found |= set(_comments(_COMMENTS.get(language), lines))
    return tuple(Fold(first, last) for first, last in sorted(found) if last > first)


def _flat(found: Sequence[Symbol]) -> Iterator[Symbol]:
    for one in found:
        yield one
        yield from _flat(one.children)


def _nested(found: Iterator[Symbol] | Sequence[Symbol]) -> tuple[Symbol, ...]:
    """Parts in the order of their first lines, each with those that it contains."""
    roots: list[Symbol] = []
    waiting = list(found)
    while waiting:
        one = waiting.pop(0)
        inside = [other for other in waiting if other.last <= one.last]
        waiting = [other for other in waiting if other.last > one.last]
        roots.append(replace(one, children=_nested(inside)))
    return tuple(roots)


def _definitions(lines: Sequence[str]) -> Iterator[Symbol]:
    for number, line in enumerate(lines, start=1):
        match = _DEFINITION.match(line)
        if match is not None:
            kind = SymbolKind.CLASS if match["word"] == "class" else SymbolKind.FUNCTION
            yield Symbol(match["name"], kind, number, _end_of_block(lines, number, len(match["indent"])), number)


def _end_of_block(lines: Sequence[str], first: int, indent: int) -> int:
    last = first
    for number, line in enumerate(lines[first:], start=first + 1):
        code = line.lstrip()
        if code and len(line) - len(code) <= indent and not code.startswith(_CLOSING):
            break
        if code:
            last = number
    return last


def _headings(lines: Sequence[str]) -> Iterator[Symbol]:
    at = [(number, match) for number, line in enumerate(lines, start=1) if (match := _HEADING.match(line)) is not None]
    ends = [number - 1 for number, _ in at[1:]] + [len(lines)]
    for (number, match), end in zip(at, ends, strict=True):
        last = max((one for one in range(number, end + 1) if lines[one - 1].strip()), default=number)
        yield Symbol(_ESCAPE.sub(r"\1", match["title"] or match["bold"]), SymbolKind.HEADING, number, last, number)


def _functions(language: Language, lines: Sequence[str]) -> Iterator[Symbol]:
    pattern = _FUNCTIONS.get(language)
    if pattern is None:
        return
    covered = 0
    for first, last in _blocks(lines):
        is_inside = language is Language.CPP and first <= covered
        named = None if is_inside else _named_above(pattern, lines, first, _HEADER_LINES.get(language, 1))
        if named is not None:
            covered = max(covered, last)
            yield Symbol(named[1], SymbolKind.FUNCTION, named[0], last, named[0])


def _named_above(pattern: re.Pattern[str], lines: Sequence[str], first: int, most: int) -> tuple[int, str] | None:
    """The line and the name of what a brace on line `first` opens."""
    for number in range(first, max(first - most, 0), -1):
        line = lines[number - 1]
        match = pattern.search(line)
        if match is not None:
            return number, match["name"]
        if number < first and line.rstrip().endswith((";", "}", "{")):
            return None
    return None


def _blocks(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    """First and last line of everything in braces, outer ones first."""
    opened: list[int] = []
    found = []
    for number, line in enumerate(lines, start=1):
        for char in _IGNORED.sub("", line):
            if char == "{":
                opened.append(number)
            elif char == "}" and opened:
                found.append((opened.pop(), number))
    yield from sorted((block for block in set(found) if block[1] > block[0]), key=lambda block: (block[0], -block[1]))


def _labels(language: Language, lines: Sequence[str]) -> Iterator[Symbol]:
    pattern = _LABELS.get(language)
    matches = [(number, pattern.match(line)) for number, line in enumerate(lines, start=1)] if pattern else []
    at = [(number, match["name"]) for number, match in matches if match is not None]
    ends = dict(_label_ends(at, lines))
    for number, name in at:
        is_function = name.startswith(_SECTION)
        kind = SymbolKind.FUNCTION if is_function else SymbolKind.LABEL
        yield Symbol(name.removeprefix(_SECTION), kind, number, ends[number], number)


def _label_ends(at: Sequence[tuple[int, str]], lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    """The last line of each label: where the next one begins or its function ends; sections end where others begin."""
    for index, (number, name) in enumerate(at):
        rest = at[index + 1 :]
        if name.startswith(_SECTION):
            rest = [one for one in rest if one[1].startswith(_SECTION)]
        end = rest[0][0] - 1 if rest else len(lines)
        closing = next((one for one in range(number, end + 1) if lines[one - 1].startswith("}")), end + 1)
        last = min(end, closing - 1)
        yield number, max((one for one in range(number, last + 1) if lines[one - 1].strip()), default=number)


def _comments(begin: str | None, lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    first: int | None = None
    for number, line in enumerate((*lines, ""), start=1):
        is_comment = begin is not None and line.lstrip().startswith(begin)
        if is_comment and first is None:
            first = number
        elif not is_comment and first is not None:
            yield first, number - 1
            first = None
