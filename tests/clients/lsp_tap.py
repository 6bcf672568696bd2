#!/usr/bin/env python3
"""Stands between an editor and a language server and writes down what they say.

    python lsp_tap.py LOG -- COMMAND [ARG ...]

Every message goes to LOG as one JSON line: {"t": seconds, "from": "client"|"server", "msg": {...}}.
The bytes themselves pass through unchanged, and the server's exit code is handed on.
Standard library only.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO

Log = Callable[[str, object], None]


class Parser:
    """Finds whole messages in a byte stream without holding the stream up."""

    def __init__(self, side: str, log: Log) -> None:
        self.side, self.log, self.buffer = side, log, bytearray()

    def feed(self, data: bytes) -> None:
        self.buffer += data
        while (head := self.buffer.find(b"\r\n\r\n")) >= 0:
            header = bytes(self.buffer[:head])
            length = _content_length(header)
            if length is None:
                self.log(self.side, {"unreadable header": header.decode("utf-8", "replace")})
                del self.buffer[: head + 4]
                continue
            end = head + 4 + length
            if len(self.buffer) < end:
                return
            body = bytes(self.buffer[head + 4 : end])
            del self.buffer[:end]
            try:
                self.log(self.side, json.loads(body))
            except ValueError:
                self.log(self.side, {"unreadable body": body.decode("utf-8", "replace")})


def _content_length(header: bytes) -> int | None:
    for line in header.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length":
            return int(value)
    return None


def _pump(parser: Parser, source: int, sink: IO[bytes]) -> None:
    with contextlib.suppress(OSError, ValueError):
        while data := os.read(source, 65536):
            sink.write(data)
            sink.flush()
            parser.feed(data)
    with contextlib.suppress(OSError):
        sink.close()


def main() -> int:
    if len(sys.argv) < 4 or sys.argv[2] != "--":
        print(__doc__, file=sys.stderr)
        return 2
    lock, start = threading.Lock(), time.monotonic()
    with Path(sys.argv[1]).open("a", encoding="utf-8") as out:

        def log(side: str, message: object) -> None:
            with lock:
                out.write(json.dumps({"t": round(time.monotonic() - start, 4), "from": side, "msg": message}) + "\n")
                out.flush()

        server = subprocess.Popen(sys.argv[3:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert server.stdin is not None and server.stdout is not None
        up = (Parser("client", log), sys.stdin.fileno(), server.stdin)
        down = (Parser("server", log), server.stdout.fileno(), sys.stdout.buffer)
        threading.Thread(target=_pump, args=up, daemon=True).start()
        reader = threading.Thread(target=_pump, args=down, daemon=True)
        reader.start()
        code = server.wait()
        reader.join(timeout=2)
        log("server", {"exit code": code})
    os._exit(code if code >= 0 else 128 - code)  # a thread may still wait for the editor


if __name__ == "__main__":
    sys.exit(main())
