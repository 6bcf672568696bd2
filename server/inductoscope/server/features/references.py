"""Places that a generated text names: lines of the program, kernels, lines of a kernel's other texts.

Finds them in the text itself, so that every document has them without being made for it.  Columns are code points.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import TypeAlias

from inductoscope.server.features.languages import Language
from inductoscope.server.positions import Text

_FILE_LINE = re.compile(r"(?<![\w./\\-])([\w.\\-]+\.py):(\d+)(?!\w)")
_OWN_LINES = re.compile(r"\blines? (\d+(?:, \d+)*)")
_TEXT_LINE = re.compile(r"\b(PTX|kernel) line (\d+)")
_NUMBER = re.compile(r"\d+")

_Found: TypeAlias = Iterator["tuple[int, int, ProgramLine | DocumentLine]"]
_Find: TypeAlias = Callable[[str], _Found]


@dataclass(frozen=True)
class ProgramLine:
    """A line (1-based) of a file of the program, as it was when it was compiled."""

    file: str
    line: int


@dataclass(frozen=True)
class DocumentLine:
    """A line (1-based) of another document of the same target."""

    name: str
    line: int = 1


@dataclass(frozen=True)
class Reference:
    """What stands from `start` to `end` (exclusive) of a line, and the place that it names."""

    line: int
    start: int
    end: int
    to: ProgramLine | DocumentLine


@dataclass(frozen=True)
class Known:
    """What names in a text can stand for.

    `files` are the program's files by their last parts, `kernels` documents by kernels' names, `texts` the other texts
    of the same kernel by what they are called (`kernel`, `PTX`); `own` is the target's file.
    """

    own: str
    files: Mapping[str, str] = field(default_factory=dict)
    kernels: Mapping[str, str] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)


def files_by_name(paths: Iterator[str]) -> dict[str, str]:
    """Paths by their last parts; those that share one are left out, since nobody can tell which is meant."""
    found: dict[str, set[str]] = {}
    for path in paths:
        found.setdefault(PurePath(path.replace("\\", "/")).name, set()).add(path)
    return {name: next(iter(several)) for name, several in found.items() if len(several) == 1}


def references(language: Language, text: str, known: Known) -> Iterator[Reference]:
    """The references of a text, in the order of its lines."""
    finders: list[_Find] = [_files(known), *_kernels(known), _texts(known)]
    if language is Language.MARKDOWN:
        finders.append(_own_lines(known))
    for number, line in enumerate(Text(text).lines, start=1):
        for find in finders:
            for start, end, to in find(line):
                yield Reference(number, start, end, to)


def _files(known: Known) -> _Find:
    def find(line: str) -> _Found:
        for match in _FILE_LINE.finditer(line):
            path = known.files.get(match[1].replace("\\", ""))
            if path is not None:
                yield match.start(), match.end(), ProgramLine(path, int(match[2]))

    return find


def _own_lines(known: Known) -> _Find:
    def find(line: str) -> _Found:
        for match in _OWN_LINES.finditer(line):
            for number in _NUMBER.finditer(line, match.start(1), match.end(1)):
                yield number.start(), number.end(), ProgramLine(known.own, int(number[0]))

    return find


def _texts(known: Known) -> _Find:
    def find(line: str) -> _Found:
        for match in _TEXT_LINE.finditer(line):
            name = known.texts.get(match[1])
            if name is not None:
                yield match.start(), match.end(), DocumentLine(name, int(match[2]))

    return find


def _kernels(known: Known) -> list[_Find]:
    """A finder of kernels' names, which Markdown writes with backslashes."""
    if not known.kernels:
        return []
    longest_first = sorted(known.kernels, key=len, reverse=True)
    names = "|".join(re.escape(name).replace("_", r"\\?_") for name in longest_first)
    pattern = re.compile(rf"(?<![\w\\])(?:{names})(?!\w|\\_)")

    def find(line: str) -> _Found:
        for match in pattern.finditer(line):
            yield match.start(), match.end(), DocumentLine(known.kernels[match[0].replace("\\", "")])

    return [find]
