"""The records of a trace file: where each begins, and where its payload lies.  Reads blocks, keeps neither.

A record is a line with a glog prefix and one JSON object; the lines after it that begin with a tab are its payload.
Other output may stand between records, and between lines of a payload.  torchrun puts `[rank0]:` before every line
that it passes on; then records of several processes are interleaved, and each payload belongs to the last record with
the same prefix.  What a record means is not known here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

BLOCK = 4 << 20
"""Bytes that are read at a time."""

LONGEST_LINE = 64 << 20
"""Bytes of a line above which it is no record; torch means to keep them below 1 MiB."""

_OTHER = re.compile(rb"\n([^\t\n][^\n]*)(?=\n)")  # a whole line that is no payload of an unprefixed record
_RECORD = re.compile(
    rb"(?P<prefix>(?:\[[^\]\n]{1,40}\]:? ?)*)(?P<level>[VDIWEC])(?P<date>\d{4}) (?P<clock>\d\d:\d\d:\d\d)\.\d+ +"
    rb"(?P<process>\d+) [^\n{]*?:\d+\] (?P<json>\{.*)"
)
_PREFIXED = re.compile(rb"((?:\[[^\]\n]{1,40}\]:? ?)+)\t")


@dataclass
class Spans:
    """Where a payload lies: pieces of the file, each whole lines that begin with `prefix` and a tab."""

    prefix: bytes = b""
    pieces: list[tuple[int, int]] = field(default_factory=list)

    def add(self, start: int, end: int) -> None:
        """One more piece; one that follows the last immediately becomes part of it."""
        if self.pieces and self.pieces[-1][1] == start:
            self.pieces[-1] = (self.pieces[-1][0], end)
        else:
            self.pieces.append((start, end))


@dataclass(frozen=True)
class Line:
    """The line of a record: its JSON text, the process that wrote it, and its time of day and date (`1130`)."""

    json: bytes
    process: int
    clock: str
    date: str
    prefix: bytes
    payload: Spans


class Scanner:
    """Finds records in a file that may still grow.

    `other` counts lines that belong to no record, `overlong` lines that were given up, `position` is how far the file
    has been read.
    """

    def __init__(self) -> None:
        self.position = 0
        self.other = 0
        self.overlong = 0
        self._tail = b""
        self._skipping = False
        self._open: dict[bytes, Line] = {}
        self._last: Line | None = None

    def read(self, file: BinaryIO) -> Iterator[Line]:
        """The records that the file has by now beyond those told already, but for the last one of each prefix."""
        file.seek(self.position)
        while block := file.read(BLOCK):
            yield from self._block(block)

    def rest(self) -> Iterator[Line]:
        """The last records: to be asked for once nothing is added to the file any more."""
        if self._tail and not self._skipping:
            yield from self._whole(b"\n" + self._tail + b"\n", self.position - len(self._tail) - 1)
            self._tail = b""
        last = list(self._open.values())
        self._open = {}
        self._last = None
        yield from last

    def _block(self, block: bytes) -> Iterator[Line]:
        base = self.position - len(self._tail)
        self.position += len(block)
        end = block.rfind(b"\n")
        if end < 0:
            self._keep(self._tail + block)
            return
        if self._skipping:
            start = block.find(b"\n")
            base, block, end = base + start, block[start:], end - start
            self._skipping = False
            text = block[: end + 1]
        else:
            base -= 1
            text = b"".join((b"\n", self._tail, block[: end + 1]))
        self._tail = block[end + 1 :]
        yield from self._whole(text, base)

    def _keep(self, tail: bytes) -> None:
        """Wait for the end of a line, unless it is too long to be one of a trace."""
        if self._skipping or len(tail) > LONGEST_LINE:
            self.overlong += not self._skipping
            self._skipping, tail = True, b""
        self._tail = tail

    def _whole(self, text: bytes, base: int) -> Iterator[Line]:
        """The records in whole lines; `text` begins with a line break that lies at `base` in the file."""
        done = 1
        for match in _OTHER.finditer(text):
            start, end = match.span(1)
            if start > done:
                self._payload(base + done, base + start)
            done = end + 1
            line = match[1]
            found = _RECORD.match(line)
            if found is not None:
                yield from self._begin(found)
            elif inside := _PREFIXED.match(line):
                self._prefixed(inside[1], base + start, base + done)
            else:
                self.other += 1
        if len(text) > done:
            self._payload(base + done, base + len(text))

    def _begin(self, found: re.Match[bytes]) -> Iterator[Line]:
        prefix = found["prefix"]
        before = self._open.get(prefix)
        if before is not None:
            yield before
        line = Line(
            found["json"],
            int(found["process"]),
            found["clock"].decode(),
            found["date"].decode(),
            prefix,
            Spans(prefix),
        )
        self._open[prefix] = line
        self._last = line if not prefix else self._last

    def _payload(self, start: int, end: int) -> None:
        if self._last is not None:
            self._last.payload.add(start, end)
        else:
            self.other += 1

    def _prefixed(self, prefix: bytes, start: int, end: int) -> None:
        record = self._open.get(prefix)
        if record is not None:
            record.payload.add(start, end)
        else:
            self.other += 1


def payload_bytes(file: BinaryIO, spans: Spans) -> bytes:
    """The payload as torch wrote it; shorter where the file has shrunk meanwhile."""
    parts = []
    for start, end in spans.pieces:
        file.seek(start)
        parts.append(file.read(end - start))
    text = b"".join(parts)
    if not text:
        return b""
    while b"\n\n" in text:  # empty lines of other output; those of a payload have their tab
        text = text.replace(b"\n\n", b"\n")
    text = text.lstrip(b"\n")
    mark = b"\n" + spans.prefix + b"\t"
    lines = (b"\n" + text).replace(mark, b"\n")[1:]
    return lines[:-1] if lines.endswith(b"\n") else lines
