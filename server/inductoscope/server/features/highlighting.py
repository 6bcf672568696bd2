"""Words of compilers' texts by what they are, for editors that do not know MLIR, LLVM IR, PTX, SASS or AMD's assembly.

Python, C++ and Markdown are left to the editor.  Works word by word, within a line.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator
from dataclasses import dataclass

from inductoscope.server.features.languages import Language
from inductoscope.server.positions import Text


class WordKind(enum.Enum):
    """What a word is; the values are LSP's names of token types."""

    COMMENT = "comment"
    STRING = "string"
    NUMBER = "number"
    TYPE = "type"
    FUNCTION = "function"
    VARIABLE = "variable"
    KEYWORD = "keyword"
    DECORATOR = "decorator"


@dataclass(frozen=True)
class Word:
    """A word from `start` to `end` (code points, exclusive) of a line (1-based)."""

    line: int
    start: int
    end: int
    kind: WordKind


def _pattern(**parts: str) -> re.Pattern[str]:
    """An alternative for each kind of word, by its name in `WordKind`, tried in this order."""
    return re.compile("|".join(f"(?P<{kind}>{expression})" for kind, expression in parts.items()))


_STRING = r'"(?:[^"\\]|\\.)*"'
_NUMBER = r"(?<![\w.])-?(?:0[xXfFdD][0-9a-fA-F]+|\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)(?!\w)"
_PATTERNS = {
    Language.MLIR: _pattern(
        COMMENT=r"//.*",
        STRING=_STRING,
        FUNCTION=r"@[\w.$]+",
        DECORATOR=r"#[\w.$]+|\bloc\b",
        VARIABLE=r"%[\w.$#]+",
        TYPE=r"!?\b(?:tt\.ptr|ttg\.memdesc|tensor)\b|\b(?:i|u?int|bf|f)\d+\w*\b|\bindex\b|\d+x[\dx]*(?:i|f|bf|!)\w*",
        KEYWORD=r"\b[a-z]\w*\.[a-z][\w.]*|^\s*(?:module|func)\b|\b(?:attributes|public|private)\b",
        NUMBER=_NUMBER,
    ),
    Language.LLVM: _pattern(
        COMMENT=r";.*",
        STRING=r'c?"(?:[^"\\]|\\.)*"',
        FUNCTION=r"@[\w.$]+",
        VARIABLE=r"%[\w.$]+",
        DECORATOR=r"[!#][\w.]*",
        TYPE=r"\b(?:i\d+|half|bfloat|float|double|ptr|void|label|token|metadata)\b",
        NUMBER=_NUMBER,
        KEYWORD=r"(?<![\w.])[a-z][a-z_]+(?![\w.:])",
    ),
    Language.PTX: _pattern(
        COMMENT=r"//.*",
        STRING=_STRING,
        VARIABLE=r"%[\w.]+|(?<=@)!?%?\w+",
        FUNCTION=r"\$[\w$]+",
        DECORATOR=r"^\s*\.[\w.]+|(?<=\s)\.(?:visible|entry|func|param|reg|global|shared|local|const|align|extern)\b",
        TYPE=r"\.(?:[busf]\d+x?\d*|bf16x?2?|pred)\b",
        KEYWORD=r"(?<![\w.$%])[a-z]\w*(?:\.(?![busf]\d|bf16|pred)\w+)*(?=[\s.;])",
        NUMBER=_NUMBER,
    ),
    Language.SASS: _pattern(
        COMMENT=r"//.*|/\*.*?\*/",
        STRING=_STRING,
        VARIABLE=r"\b(?:U?R(?:\d+|Z)|U?P(?:\d+|T)|SR_[\w.]+|B\d+)\b",
        FUNCTION=r"`\([^)]*\)|\.L_[\w.]+",
        DECORATOR=r"^\s*\.[\w.]+",
        NUMBER=_NUMBER,
        KEYWORD=r"\b[A-Z][A-Z0-9]*(?:\.[A-Z0-9_]+)*\b",
    ),
    Language.AMDGCN: _pattern(
        COMMENT=r";.*|//.*",
        STRING=_STRING,
        DECORATOR=r"^\s*\.[\w.]+",
        VARIABLE=r"\b[sva](?:\d+|\[\d+:\d+\])(?!\w)|\b(?:vcc|exec|scc|m0)(?:_lo|_hi)?\b",
        NUMBER=_NUMBER,
        KEYWORD=r"(?<![\w.])[a-z]\w*_\w+",
    ),
}


def words(language: Language, text: str) -> Iterator[Word]:
    """The words of a text, in its order; none for languages that editors know."""
    pattern = _PATTERNS.get(language)
    for number, line in enumerate(Text(text).lines if pattern is not None else (), start=1):
        for match in pattern.finditer(line) if pattern is not None else ():
            start, end = match.span()
            start += len(match[0]) - len(match[0].lstrip())
            if match.lastgroup is not None and end > start:
                yield Word(number, start, end, WordKind[match.lastgroup])
