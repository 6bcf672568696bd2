"""Frames over byte streams, blocking and asynchronous."""

from __future__ import annotations

import asyncio
import io
import os
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inductoscope.protocol import frames

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(st.characters(codec="utf-8")),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner, max_size=4)
    ),
    max_leaves=12,
)


class _Dribble(io.RawIOBase):
    """A stream that gives one byte at a time, as a pipe may."""

    def __init__(self, data: bytes) -> None:
        self._rest = io.BytesIO(data)

    def read(self, count: int = -1) -> bytes:
        return self._rest.read(min(count, 1))


def _channel(data: bytes) -> frames.Channel:
    return frames.Channel(_Dribble(data), io.BytesIO())  # type: ignore[arg-type]


@given(st.lists(JSON, max_size=5))
def test_values_arrive_in_order_and_whole(values: list[Any]) -> None:
    channel = _channel(b"".join(map(frames.encode, values)))
    assert [channel.receive() for _ in values] == values
    assert channel.receive() is None


@given(JSON, st.data())
def test_a_stream_cut_inside_a_frame_is_an_error(value: Any, data: st.DataObject) -> None:
    whole = frames.encode(value)
    cut = data.draw(st.integers(1, len(whole) - 1))
    with pytest.raises(frames.FrameError):
        _channel(whole[:cut]).receive()


def test_a_frame_that_announces_too_much_is_refused_before_it_is_read() -> None:
    with pytest.raises(frames.FrameError, match="over the limit"):
        _channel(b"\xff\xff\xff\xff").receive()


def test_damaged_json_is_a_frame_error() -> None:
    with pytest.raises(frames.FrameError, match="damaged"):
        _channel(b"\x00\x00\x00\x02{]").receive()


def test_lone_surrogates_survive() -> None:
    assert _channel(frames.encode("a\udc80b")).receive() == "a\udc80b"


def test_threads_do_not_interleave_their_frames() -> None:
    read_fd, write_fd = os.pipe()
    with os.fdopen(read_fd, "rb") as reader, os.fdopen(write_fd, "wb") as writer:
        channel = frames.Channel(reader, writer)
        texts = [letter * 70_000 for letter in "abcd"]
        threads = [threading.Thread(target=channel.send, args=(text,)) for text in texts]
        for thread in threads:
            thread.start()
        assert sorted(channel.receive() for _ in texts) == texts
        for thread in threads:
            thread.join()


async def test_the_asynchronous_reader_reads_what_the_channel_writes() -> None:
    reader = asyncio.StreamReader()
    reader.feed_data(frames.encode({"a": 1}) + frames.encode([]) + b"\x00\x00")
    reader.feed_eof()
    assert await frames.read_frame(reader) == {"a": 1}
    assert await frames.read_frame(reader) == []
    with pytest.raises(frames.FrameError, match="inside a frame"):
        await frames.read_frame(reader)
