"""Records are found wherever they are, however the file is cut into blocks, and whatever stands between them."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inductoscope.server.traces import lines
from inductoscope.server.traces.lines import Line, Scanner, payload_bytes
from traces.support import record


def scan(data: bytes) -> tuple[list[Line], Scanner]:
    scanner = Scanner()
    found = [*scanner.read(io.BytesIO(data)), *scanner.rest()]
    return found, scanner


def payloads(data: bytes) -> list[str]:
    return [payload_bytes(io.BytesIO(data), line.payload).decode() for line in scan(data)[0]]


def told(data: bytes) -> list[tuple[bytes, str]]:
    return [(line.json, payload_bytes(io.BytesIO(data), line.payload).decode()) for line in scan(data)[0]]


LINE = st.text(st.characters(blacklist_characters="\n\r", blacklist_categories=("Cs",)), max_size=30)
TEXTS = st.lists(LINE, max_size=5)


@given(
    st.lists(st.tuples(TEXTS, st.booleans()), min_size=1, max_size=6),
    st.integers(min_value=1, max_value=200),
)
def test_any_payload_in_any_blocks(parts: list[tuple[list[str], bool]], block: int) -> None:
    texts = ["\n".join(part) for part, _ in parts]
    data = "".join(
        record({"dynamo_output_graph": {"n": at}}, text) + ("a line of the program\n" if noisy else "")
        for at, (text, (_, noisy)) in enumerate(zip(texts, parts, strict=True))
    ).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "BLOCK", block)
        assert payloads(data) == texts


def test_a_growing_file_is_read_as_it_is_at_the_end() -> None:
    data = "".join(record({"dynamo_output_graph": {"n": n}}, f"graph {n}\n  more") for n in range(5)).encode()
    expected = told(data)
    for step in (1, 7, 100):
        scanner, found = Scanner(), []
        for end in range(0, len(data) + step, step):
            found += list(scanner.read(io.BytesIO(data[:end])))
        found += list(scanner.rest())
        assert [(one.json, payload_bytes(io.BytesIO(data), one.payload).decode()) for one in found] == expected


def test_output_inside_of_a_payload_does_not_end_it() -> None:
    whole = record({"inductor_output_code": {}}, "first\nsecond\nthird")
    data = whole.replace("\tsecond\n", "Epoch 3: loss 0.1\n\n\tsecond\n\n").encode()
    assert payloads(data) == ["first\nsecond\nthird"]
    assert scan(data)[1].other == 1


def test_ranks_that_torchrun_interleaves() -> None:
    graphs = [f"graph of {n}\nsecond line" for n in (0, 1)]
    ranks = [record({"dynamo_output_graph": {}}, graphs[n], 7 + n, f"[rank{n}]: ") for n in (0, 1)]
    split = [text.splitlines(keepends=True) for text in ranks]
    data = "".join(line for pair in zip(*split, strict=True) for line in pair).encode()
    assert sorted(payloads(data)) == graphs


def test_a_record_that_is_cut_off_and_the_ones_before_it() -> None:
    data = (record({"str": ["a.py", 0]}) + record({"dynamo_output_graph": {}}, "graph")).encode()
    assert len(scan(data[:-20])[0]) == 2
    assert payloads(data[:-3]) == ["", "gra"]


def test_what_is_no_text_has_no_records() -> None:
    found, scanner = scan(bytes(range(256)) * 4096)
    assert found == []
    assert scanner.other > 0


def test_an_endless_line_is_given_up_and_what_follows_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "BLOCK", 1000)
    monkeypatch.setattr(lines, "LONGEST_LINE", 5000)
    data = b"x" * 20_000 + b"\n" + record({"dynamo_output_graph": {}}, "graph").encode()
    found, scanner = scan(data)
    assert [payload_bytes(io.BytesIO(data), one.payload) for one in found] == [b"graph"]
    assert scanner.overlong == 1


def test_lines_that_windows_ended() -> None:
    data = record({"dynamo_output_graph": {}}, "graph").replace("\n", "\r\n").encode()
    (line,) = scan(data)[0]
    assert line.process == 7
