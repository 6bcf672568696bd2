"""What generated documents hold, as LSP values: symbols, folds, links and words.

Own lines are 1-based and own columns code points; LSP lines are 0-based and columns in the client's unit.
"""

from __future__ import annotations

from collections.abc import Iterable

from lsprotocol import types

from inductoscope.server.features.artifacts import Spot
from inductoscope.server.features.highlighting import Word, WordKind
from inductoscope.server.features.outline import Fold, Symbol, SymbolKind
from inductoscope.server.features.references import Reference
from inductoscope.server.positions import Encoding, Text, to_client
from inductoscope.server.to_lsp import Where

LEGEND = types.SemanticTokensLegend(token_types=[kind.value for kind in WordKind], token_modifiers=[])


def stretch(text: Text, line: int, start: int, end: int, where: Where) -> types.Range:
    """A part of a line of a text (1-based; code points, `end` exclusive)."""
    ends = (to_client(text.line(line), column, where.encoding) for column in (start, end))
    return types.Range(*(types.Position(line - 1, character) for character in ends))


def contains(within: types.Range, at: types.Position) -> bool:
    """Whether a position is in a range, or right behind it, where a cursor stands that has just passed it."""
    return (
        (within.start.line, within.start.character)
        <= (at.line, at.character)
        <= (
            within.end.line,
            within.end.character,
        )
    )


_SYMBOLS = {
    SymbolKind.FUNCTION: types.SymbolKind.Function,
    SymbolKind.CLASS: types.SymbolKind.Class,
    SymbolKind.LABEL: types.SymbolKind.Key,
    SymbolKind.HEADING: types.SymbolKind.String,
}


def symbol(part: Symbol, text: Text, encoding: Encoding) -> types.DocumentSymbol:
    """A part of a generated text with the parts inside of it."""
    name_line, last = text.line(part.line), text.line(part.last)
    selection = types.Range(
        types.Position(part.line - 1, 0), types.Position(part.line - 1, to_client(name_line, len(name_line), encoding))
    )
    end = types.Position(part.last - 1, to_client(last, len(last), encoding))
    return types.DocumentSymbol(
        name=part.name,
        kind=_SYMBOLS[part.kind],
        range=types.Range(types.Position(part.first - 1, 0), end),
        selection_range=selection,
        children=[symbol(child, text, encoding) for child in part.children],
    )


def flat_symbols(parts: Iterable[Symbol], uri: str, inside: str | None = None) -> list[types.SymbolInformation]:
    """The parts of a generated text for clients that know no symbols within symbols."""
    found = []
    for part in parts:
        lines = types.Range(types.Position(part.first - 1, 0), types.Position(part.last, 0))
        where = types.Location(uri, lines)
        found.append(types.SymbolInformation(where, part.name, _SYMBOLS[part.kind], container_name=inside))
        found += flat_symbols(part.children, uri, part.name)
    return found


def fold(lines: Fold) -> types.FoldingRange:
    """Lines that can be folded."""
    return types.FoldingRange(lines.first - 1, lines.last - 1)


def link(reference: Reference, spot: Spot, text: Text, where: Where) -> types.DocumentLink:
    """What a text names; the fragment is how editors write a line in a link."""
    uri = where.uri(spot.path) if spot.path is not None else spot.uri
    target = f"{uri}#L{spot.line}" if spot.path is not None or spot.line > 1 else uri
    return types.DocumentLink(stretch(text, reference.line, reference.start, reference.end, where), target=target)


def tokens(words: Iterable[Word], text: Text, encoding: Encoding) -> types.SemanticTokens:
    """The words of a text, each told by its distance from the one before it, as LSP has it."""
    numbers = {kind: number for number, kind in enumerate(WordKind)}
    data: list[int] = []
    last_line, last_start = 1, 0
    for word in words:
        line = text.line(word.line)
        start, end = (to_client(line, column, encoding) for column in (word.start, word.end))
        after = start - last_start if word.line == last_line else start
        data += [word.line - last_line, after, end - start, numbers[word.kind], 0]
        last_line, last_start = word.line, start
    return types.SemanticTokens(data)
