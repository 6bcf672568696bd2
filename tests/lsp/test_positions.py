from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from inductoscope.server.positions import Encoding, Text, to_client

LINES = st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]))
PYTHON_CODEC = {Encoding.UTF8: "utf-8", Encoding.UTF16: "utf-16-le", Encoding.UTF32: "utf-32-le"}
UNIT_BYTES = {Encoding.UTF8: 1, Encoding.UTF16: 2, Encoding.UTF32: 4}


@given(LINES, st.sampled_from(Encoding), st.data())
def test_units_are_those_of_the_encoded_text(line: str, encoding: Encoding, data: st.DataObject) -> None:
    column = data.draw(st.integers(0, len(line)))
    expected = len(line[:column].encode(PYTHON_CODEC[encoding])) // UNIT_BYTES[encoding]
    assert to_client(line, column, encoding) == expected


def test_columns_past_the_end_are_the_end() -> None:
    assert to_client("abc", 99, Encoding.UTF16) == 3
    assert to_client("é", 99, Encoding.UTF8) == 2
    assert to_client("é", -5, Encoding.UTF8) == 0


def test_a_lone_surrogate_has_units_too() -> None:
    assert [to_client("\ud800x", 1, encoding) for encoding in Encoding] == [3, 1, 1]


def test_only_lf_crlf_and_cr_end_lines() -> None:
    text = Text("a\r\nb\rc\nd\x0ce\u2028f\x85g\x0bh\x1ci")
    assert text.lines == ("a", "b", "c", "d\x0ce\u2028f\x85g\x0bh\x1ci")


@given(st.text())
def test_lines_are_counted_as_line_ends_are(source: str) -> None:
    ends = source.replace("\r\n", "\n").replace("\r", "\n").count("\n")
    assert len(Text(source).lines) == ends + 1


def test_lines_outside_of_the_text_are_empty() -> None:
    text = Text("a\nb")
    assert [text.line(number) for number in (0, 1, 2, 3)] == ["", "a", "b", ""]
