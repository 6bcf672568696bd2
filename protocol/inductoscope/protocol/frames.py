"""Length-prefixed frames over a pair of byte streams.

A frame is a 4-byte big-endian length and that many bytes of UTF-8 JSON.  Both ends of the worker conversation use it;
this module knows nothing of what the frames say.
"""

from __future__ import annotations

import json
import struct
import threading
from typing import Any, BinaryIO, Protocol

HEADER = struct.Struct(">I")
MAX_BYTES = 256 * 1024 * 1024


class FrameError(ConnectionError):
    """The stream ended inside a frame, or a frame is damaged or too large."""


class _Readable(Protocol):
    async def readexactly(self, n: int) -> bytes: ...


def encode(value: Any) -> bytes:
    """One frame with the JSON form of `value`.  Raises `FrameError` over `MAX_BYTES`."""
    body = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
    if len(body) > MAX_BYTES:
        raise FrameError(f"a message of {len(body)} bytes is over the limit of {MAX_BYTES}")
    return HEADER.pack(len(body)) + body


def decode(body: bytes) -> Any:
    """The value in the body of a frame.  Raises `FrameError`."""
    try:
        return json.loads(body.decode("utf-8", "surrogatepass"))
    except ValueError as error:
        raise FrameError(f"damaged frame: {error}") from None


def length(header: bytes) -> int:
    """The length that a header announces.  Raises `FrameError` over `MAX_BYTES`."""
    size: int = HEADER.unpack(header)[0]
    if size > MAX_BYTES:
        raise FrameError(f"a frame announces {size} bytes, over the limit of {MAX_BYTES}")
    return size


class Channel:
    """Blocking frames over two binary streams; `send` may be called from any thread."""

    def __init__(self, reader: BinaryIO, writer: BinaryIO) -> None:
        self._reader = reader
        self._writer = writer
        self._lock = threading.Lock()

    def send(self, value: Any) -> None:
        """Write one frame.  Raises `FrameError`, and `OSError` when the other end is gone."""
        frame = encode(value)
        with self._lock:
            self._writer.write(frame)
            self._writer.flush()

    def receive(self) -> Any | None:
        """The next value, or None at the end of the stream.  Raises `FrameError`."""
        header = self._exactly(HEADER.size)
        if header is None:
            return None
        body = self._exactly(length(header))
        if body is None:
            raise FrameError("the stream ended inside a frame")
        return decode(body)

    def _exactly(self, count: int) -> bytes | None:
        data = b""
        while len(data) < count:
            piece = self._reader.read(count - len(data))
            if not piece:
                if data:
                    raise FrameError("the stream ended inside a frame")
                return None
            data += piece
        return data


async def read_frame(reader: _Readable) -> Any | None:
    """The next value from an asyncio stream, or None at its end.  Raises `FrameError`."""
    import asyncio

    try:
        header = await reader.readexactly(HEADER.size)
    except asyncio.IncompleteReadError as error:
        if error.partial:
            raise FrameError("the stream ended inside a frame") from None
        return None
    try:
        return decode(await reader.readexactly(length(header)))
    except asyncio.IncompleteReadError:
        raise FrameError("the stream ended inside a frame") from None
