"""What tests of traces share: making records, and reading what a folder has."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from inductoscope.server.traces import building, reading
from inductoscope.server.traces.reports import Asked, Detail
from inductoscope.server.traces.run import TraceReport

VERSIONS = ("2.11", "2.12", "2.13", "2.14", "2.15")


def record(metadata: dict[str, Any], payload: str | None = None, process: int = 7, prefix: str = "") -> str:
    """A record as torch writes it, with what torchrun puts before each line."""
    data = dict(metadata)
    if payload is not None:
        data["has_payload"] = hashlib.md5(payload.encode()).hexdigest()
    lines = [f"V1130 14:02:03.000004 {process} torch/_dynamo/x.py:12] {json.dumps(data)}"]
    lines += [f"\t{line}" for line in payload.split("\n")] if payload is not None else []
    return "".join(f"{prefix}{line}\n" for line in lines)


def artifact(name: str, payload: str, compile_id: str = "0/0", **more: Any) -> str:
    """An artifact of a compilation."""
    frame, nth = map(int, compile_id.split("/"))
    metadata = {"artifact": {"name": name, "encoding": "string"}, "frame_id": frame, "frame_compile_id": nth}
    return record({**metadata, "attempt": 0}, payload, **more)


def report(path: Path, folder: Path, *details: Detail) -> TraceReport:
    """The report of a file or folder."""
    sources = reading.read_files(reading.files(path))
    return building.build(path, sources, folder, Asked(frozenset(details)))
