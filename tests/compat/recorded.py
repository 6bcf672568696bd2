"""What was recorded of each version of torch (`record.py`), and how to hand it to the code that reads torch."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from inductoscope.compiler.compat import dynamo_trace
from inductoscope.compiler.compat.dynamo_trace import Record

HERE = Path(__file__).parent
FIXTURES = {path.stem: path for path in sorted((HERE / "fixtures").glob("*.json"))}

Json = Mapping[str, Any]


@cache
def fixture(minor: str) -> Json:
    """Everything that was recorded of a minor version."""
    found: Json = json.loads(FIXTURES[minor].read_text(encoding="utf-8"))
    return found


def program(minor: str, name: str) -> Json:
    """What was recorded of one program."""
    found: Json = fixture(minor)["programs"][name]
    return found


def records(minor: str, name: str) -> list[Record]:
    """The records of a program's structured trace, sent through torch's own logger to the reader."""
    found: list[Record] = []
    with dynamo_trace.trace_records(found.append):
        for entry in program(minor, name)["records"]:
            logging.getLogger("torch.__trace").handle(_log_record(entry))
    return found


def file_names(minor: str, name: str) -> dict[str, int]:
    """The numbers that stand for file names in a program's records."""
    entries = (entry["metadata"].get("str") for entry in program(minor, name)["records"])
    return {entry[0]: entry[1] for entry in entries if entry}


def named(minor: str, name: str, record: str) -> list[Record]:
    """A program's records of one name."""
    return [one for one in records(minor, name) if one.name == record]


def artifact_names(minor: str) -> Iterator[str]:
    """Every record key and artifact name that was recorded of a version."""
    for found in fixture(minor)["programs"].values():
        for entry in found["records"]:
            yield from (key for key in entry["metadata"] if key != "artifact")
            yield str(entry["metadata"].get("artifact", {}).get("name"))


def _log_record(entry: Json) -> logging.LogRecord:
    record = logging.LogRecord("torch.__trace", logging.DEBUG, "", 0, "", (), None)
    record.metadata = entry["metadata"]
    record.payload = entry["payload"]
    return record
