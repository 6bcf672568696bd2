"""Columns on their way to a client: in every unit, what a client cuts out of its text is what was meant."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from lsprotocol import types

from inductoscope.protocol.report import Finding, Rung, Severity
from inductoscope.server import artifacts_to_lsp, to_lsp
from inductoscope.server.features.highlighting import Word, WordKind
from inductoscope.server.features.inlay_hints import InlayHint
from inductoscope.server.positions import Encoding, Text
from inductoscope.server.to_lsp import Where

CODECS = {Encoding.UTF8: ("utf-8", 1), Encoding.UTF16: ("utf-16-le", 2), Encoding.UTF32: ("utf-32-le", 4)}
LINES = st.lists(
    st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), max_size=30), min_size=1, max_size=6
)
FILE = "/w/model.py"


def cut(line: str, start: int, end: int, encoding: Encoding) -> str:
    """What a client that counts in these units has between two columns."""
    codec, size = CODECS[encoding]
    return line.encode(codec)[start * size : end * size].decode(codec)


def where(lines: list[str], encoding: Encoding) -> Where:
    text = Text("\n".join(lines))
    return Where(lambda path: f"file://{path}", lambda path: text, encoding)


@st.composite
def stretches(draw: st.DrawFn) -> tuple[list[str], int, int, int]:
    """Lines, the number of one of them, and two columns in it."""
    lines = draw(LINES)
    number = draw(st.integers(1, len(lines)))
    ends = sorted(draw(st.integers(0, len(lines[number - 1]))) for _ in range(2))
    return lines, number, ends[0], ends[1]


@given(stretches(), st.sampled_from(Encoding))
def test_a_finding_covers_what_it_is_about(drawn: tuple[list[str], int, int, int], encoding: Encoding) -> None:
    lines, number, start, end = drawn
    found = Finding("graph-break", Severity.WARNING, FILE, number, start, number, end, "said", Rung.CAPTURE)
    span = where(lines, encoding).span(found)
    assert span.start.line == span.end.line == number - 1
    covered = cut(lines[number - 1], span.start.character, span.end.character, encoding)
    assert covered == (lines[number - 1][start:end] if end > start else lines[number - 1].strip())


@given(LINES, st.sampled_from(Encoding), st.data())
def test_a_finding_over_several_lines(lines: list[str], encoding: Encoding, data: st.DataObject) -> None:
    first = data.draw(st.integers(1, len(lines)))
    last = data.draw(st.integers(first, len(lines)))
    start = data.draw(st.integers(0, len(lines[first - 1])))
    end = data.draw(st.integers(0, len(lines[last - 1])))
    found = Finding("graph-break", Severity.WARNING, FILE, first, start, last, end, "said", Rung.CAPTURE)
    span = where(lines, encoding).span(found)
    if (last, end) > (first, start):
        assert cut(lines[first - 1], 0, span.start.character, encoding) == lines[first - 1][:start]
        assert cut(lines[last - 1], 0, span.end.character, encoding) == lines[last - 1][:end]
    assert (span.start.line, span.start.character) <= (span.end.line, span.end.character)


@given(stretches(), st.sampled_from(Encoding))
def test_a_reference_is_where_it_stands(drawn: tuple[list[str], int, int, int], encoding: Encoding) -> None:
    lines, number, start, end = drawn
    here = where(lines, encoding)
    span = artifacts_to_lsp.stretch(Text("\n".join(lines)), number, start, end, here)
    assert cut(lines[number - 1], span.start.character, span.end.character, encoding) == lines[number - 1][start:end]
    assert artifacts_to_lsp.contains(span, span.start) and artifacts_to_lsp.contains(span, span.end)
    assert not artifacts_to_lsp.contains(span, types.Position(span.end.line, span.end.character + 1))


@given(stretches(), st.sampled_from(Encoding))
def test_a_hint_stands_behind_its_variable(drawn: tuple[list[str], int, int, int], encoding: Encoding) -> None:
    lines, number, _, column = drawn
    hint = to_lsp.inlay_hint(InlayHint(number, column, ": f32[4]", "said"), FILE, where(lines, encoding))
    assert hint.position.line == number - 1
    assert cut(lines[number - 1], 0, hint.position.character, encoding) == lines[number - 1][:column]


@given(LINES, st.sampled_from(Encoding), st.data())
def test_words_are_told_by_their_distances(lines: list[str], encoding: Encoding, data: st.DataObject) -> None:
    words = []
    for number, line in enumerate(lines, start=1):
        ends = sorted(set(data.draw(st.lists(st.integers(0, len(line)), max_size=6))))
        words += [
            Word(number, start, end, data.draw(st.sampled_from(WordKind)))
            for start, end in zip(ends[::2], ends[1::2], strict=False)
        ]
    told = artifacts_to_lsp.tokens(words, Text("\n".join(lines)), encoding).data
    line_at, start_at, seen = 0, 0, []
    for index in range(0, len(told), 5):
        lines_on, starts_on, length, kind, modifiers = told[index : index + 5]
        start_at = starts_on + (start_at if lines_on == 0 else 0)
        line_at += lines_on
        text = cut(lines[line_at], start_at, start_at + length, encoding)
        seen.append((line_at + 1, text, artifacts_to_lsp.LEGEND.token_types[kind]))
        assert modifiers == 0
    assert seen == [(word.line, lines[word.line - 1][word.start : word.end], word.kind.value) for word in words]
