"""The envelope of a record: its kind, which compilation it belongs to, and its payload when somebody asks for it.

Keys and their history: torch/_logging/_internal.py `trace_structured`, 2.6 to 2.15.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inductoscope.server.traces.lines import Line, Spans, payload_bytes

CONTEXT = frozenset(
    (
        "rank",
        "frame_id",
        "frame_compile_id",
        "attempt",
        "compiled_autograd_id",
        "has_payload",
        "stack",
        "subgraph_name",
        "severity",
        "timestamp",
        "pathname",
        "thread",
    )
)
"""Keys that stand beside the one that says what a record is."""

_KIND = re.compile(rb'\{"(\w+)": ?(?:\{"name": ?"([^"\\]*)")?')


class RecordError(ValueError):
    """A line that looks like a record and is none, such as one that was cut off."""


@dataclass(frozen=True)
class Payload:
    """The text that belongs to a record, read from its file when it is asked for."""

    file: Path
    spans: Spans
    md5: str | None = None

    @property
    def bytes(self) -> int:
        """How much of the file it takes, tabs included."""
        return sum(end - start for start, end in self.spans.pieces)

    def text(self) -> str:
        """The text; empty where the file is gone, short where it has shrunk."""
        try:
            with self.file.open("rb") as file:
                return payload_bytes(file, self.spans).decode(errors="replace")
        except OSError:
            return ""


@dataclass(frozen=True)
class Record:
    """One record: `kind` is its key, `name` that of an artifact, `fields` what stands under the key.

    `compile_id` is torch's (`0/0`, `!1/0/0` under compiled autograd), None outside of a compilation.
    """

    kind: str
    name: str
    fields: Any
    compile_id: str | None
    attempt: int
    rank: int | None
    clock: str
    payload: Payload


def kind_of(line: Line) -> tuple[str, str]:
    """Key of a record and name of an artifact, without reading all of it; empty where that needs reading.

    torch writes the key first; the name of an artifact is the first of its fields.
    """
    match = _KIND.match(line.json)
    if match is None or (kind := match[1].decode()) in CONTEXT:
        return "", ""
    if kind != "artifact":
        return kind, ""
    return (kind, match[2].decode(errors="replace")) if match[2] is not None else ("", "")


def read(line: Line, file: Path) -> Record:
    """The whole envelope.  Raises `RecordError`."""
    try:
        data = json.loads(line.json)
    except (ValueError, RecursionError) as error:
        raise RecordError(str(error)) from None
    kind = next((key for key in data if key not in CONTEXT), None)
    if kind is None:
        raise RecordError("no key says what it is")
    fields = data[kind]
    name = str(fields.get("name", "")) if kind == "artifact" and isinstance(fields, dict) else ""
    attempt, rank, md5 = data.get("attempt"), data.get("rank"), data.get("has_payload")
    return Record(
        kind=kind,
        name=name,
        fields=fields,
        compile_id=_compile_id(data),
        attempt=attempt if isinstance(attempt, int) else 0,
        rank=rank if isinstance(rank, int) else None,
        clock=line.clock,
        payload=Payload(file, line.payload, md5 if isinstance(md5, str) else None),
    )


def _compile_id(data: Mapping[str, Any]) -> str | None:
    """As `str(torch._guards.CompileId)` has it, 2.6 to 2.15."""
    parts = [data[key] for key in ("frame_id", "frame_compile_id") if isinstance(data.get(key), int)]
    autograd = data.get("compiled_autograd_id")
    if isinstance(autograd, int):
        return "/".join([f"!{autograd}", *map(str, parts)])
    return "/".join(map(str, parts)) if parts else None
