from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from inductoscope.server.positions import Text
from inductoscope.server.shift import between

TEXTS = st.lists(st.sampled_from(["a", "b", "c", ""])).map("\n".join).map(Text)


def shift(old: str, new: str) -> dict[int, int | None]:
    before = Text("\n".join(old))
    move = between(before, Text("\n".join(new)))
    return {line: move.forward(line) for line in range(1, len(before.lines) + 1)}


def test_lines_below_an_insertion_move_down() -> None:
    assert shift("abc", "axbc") == {1: 1, 2: 3, 3: 4}


def test_lines_below_a_deletion_move_up() -> None:
    assert shift("abc", "ac") == {1: 1, 2: None, 3: 2}


def test_an_edited_line_goes_nowhere_and_takes_no_other_with_it() -> None:
    assert shift("abc", "aXc") == {1: 1, 2: None, 3: 3}


def test_edits_at_several_places() -> None:
    assert shift("abcdef", "xabCdeyf") == {1: 2, 2: 3, 3: None, 4: 5, 5: 6, 6: 8}


@given(TEXTS, TEXTS)
def test_a_line_that_is_kept_reads_the_same_and_keeps_its_order(old: Text, new: Text) -> None:
    move = between(old, new)
    kept = [(line, move.forward(line)) for line in range(1, len(old.lines) + 1)]
    places = [(line, there) for line, there in kept if there is not None]
    assert all(old.line(line) == new.line(there) for line, there in places)
    assert [there for _, there in places] == sorted({there for _, there in places})
    assert all(move.back(there) == line for line, there in places)


@given(TEXTS)
def test_the_same_text_moves_nothing(text: Text) -> None:
    move = between(text, text)
    assert [move.forward(line) for line in range(1, len(text.lines) + 1)] == list(range(1, len(text.lines) + 1))


@given(TEXTS, TEXTS, st.integers(1, 8), st.integers(0, 4))
def test_a_range_that_is_kept_moves_as_one(old: Text, new: Text, first: int, length: int) -> None:
    move = between(old, new)
    if move.keeps(first, first + length):
        moved = [move.forward(line) for line in range(first, first + length + 1)]
        start = moved[0]
        assert start is not None
        assert moved == list(range(start, start + length + 1))


@given(TEXTS, TEXTS, st.integers(1, 8))
def test_every_line_has_a_nearest_place(old: Text, new: Text, line: int) -> None:
    move = between(old, new)
    there = move.near(line)
    assert 1 <= there <= len(new.lines)
    if move.forward(line) is not None:
        assert there == move.forward(line)


def test_a_rewritten_file_is_not_compared_line_by_line() -> None:
    old = Text("\n".join(f"old {number}" for number in range(5000)))
    new = Text("\n".join(f"new {number}" for number in range(5000)))
    assert between(old, new).runs == ()
