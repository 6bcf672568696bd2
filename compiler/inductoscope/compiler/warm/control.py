"""The socket of a warm process: frames in both directions, with descriptors beside those from the server.

Knows nothing of what the messages ask for.
"""

from __future__ import annotations

import socket

from inductoscope.protocol import frames, messages

_MOST_DESCRIPTORS = 3


class Control:
    """The warm process's end.  Every method raises `OSError` when the server is gone or talks nonsense."""

    def __init__(self, descriptor: int) -> None:
        self._socket = socket.socket(fileno=descriptor)

    def fileno(self) -> int:
        """The descriptor, to wait for."""
        return self._socket.fileno()

    def close(self) -> None:
        """Give up this process's hold of the socket."""
        self._socket.close()

    def send(self, message: messages.Message) -> None:
        """Send one message."""
        self._socket.sendall(frames.encode(messages.to_wire(message)))

    def receive(self) -> tuple[messages.Message, list[int]] | None:
        """The next message and the descriptors that came with it; None when the server is gone."""
        descriptors: list[int] = []
        header = self._exactly(frames.HEADER.size, descriptors)
        if header is None:
            return None
        body = self._exactly(frames.length(header), descriptors)
        return None if body is None else (messages.from_wire(frames.decode(body)), descriptors)

    def _exactly(self, count: int, descriptors: list[int]) -> bytes | None:
        data = b""
        while len(data) < count:
            piece, received, _, _ = socket.recv_fds(
                self._socket, count - len(data), _MOST_DESCRIPTORS, socket.MSG_CMSG_CLOEXEC
            )
            descriptors += received
            if not piece:
                return None
            data += piece
        return data
