"""torch's own reader of the same logs: whatever it reads is read here, record by record and text by text."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from inductoscope.server.traces import building, reading
from inductoscope.server.traces.compilations import Compilation
from inductoscope.server.traces.process import Process
from inductoscope.server.traces.records import Payload
from traces.support import VERSIONS

TLPARSE = Path(sys.executable).with_name("tlparse")
CONTEXT = frozenset(
    (
        "rank",
        "frame_id",
        "frame_compile_id",
        "attempt",
        "compiled_autograd_id",
        "subgraph_name",
        "has_payload",
        "payload_filename",
        "stack",
        "timestamp",
        "thread",
        "pathname",
        "lineno",
    )
)
# What tlparse gathers in tables of its own, or makes of other records.
_ITS_OWN = frozenset({"string_table"})

pytestmark = pytest.mark.skipif(not TLPARSE.exists(), reason="tlparse is not installed")


class Read:
    """One log, as tlparse reads it and as it is read here."""

    def __init__(self, log: Path, out: Path) -> None:
        command = [TLPARSE, log, "-o", out, "--overwrite", "--no-browser", "--plain-text"]
        subprocess.run(command, check=True, capture_output=True)
        self.out = out
        self.theirs = [json.loads(line) for line in (out / "raw.jsonl").read_text().splitlines()]
        (source,) = reading.read_files([log])
        (self.ours,) = source.processes.values()
        self.source = source

    def records(self) -> Iterator[tuple[str, dict[str, Any]]]:
        for data in self.theirs:
            kind = next(key for key in data if key not in CONTEXT)
            if kind not in _ITS_OWN:
                yield kind, data


@pytest.fixture(
    scope="module", params=[f"{version}/{run}" for version in VERSIONS for run in ("cold", "warm", "rank1")]
)
def read(request: pytest.FixtureRequest, recorded: Path, tmp_path_factory: pytest.TempPathFactory) -> Read:
    return Read(recorded / f"{request.param}.log", tmp_path_factory.mktemp("tlparse"))


def _id(data: dict[str, Any]) -> str:
    parts = [data[key] for key in ("frame_id", "frame_compile_id") if data.get(key) is not None]
    autograd = data.get("compiled_autograd_id")
    return "/".join(map(str, parts)) if autograd is None else "/".join([f"!{autograd}", *map(str, parts)])


def test_as_many_records_of_each_kind(read: Read) -> None:
    ours = Counter(read.ours.records)
    del ours["str"], ours["chromium_event"]  # a table and a timeline of their own
    assert ours == Counter(kind for kind, _ in read.records())


def test_the_same_table_of_names(read: Read) -> None:
    table = next(data["string_table"] for data in read.theirs if "string_table" in data)
    assert {number: name for number, name in enumerate(table) if name is not None} == read.ours.names


def test_every_text_that_it_writes_is_here(read: Read) -> None:
    """Byte for byte, but for JSON, which tlparse writes in a layout of its own."""
    ours = Counter(_steady(one.payload.text()) for one in building.artifacts([read.ours]))
    theirs: Counter[str] = Counter()
    for kind, data in read.records():
        file = data.get("payload_filename")
        if file is not None and kind != "chromium_event":
            theirs[_steady((read.out / file).read_text())] += 1
    assert theirs - ours == Counter()


def test_every_event_of_the_timeline(read: Read) -> None:
    theirs = json.loads((read.out / "chromium_events.json").read_text())
    assert len(read.ours.events) == len(theirs)
    ours = [json.loads(Payload(read.ours.file, spans).text()) for spans in read.ours.events]
    assert [event["name"] for event in ours] == [event["name"] for event in theirs]


def test_the_same_compilations_with_the_same_metrics(read: Read) -> None:
    fields = (
        "co_name",
        "co_filename",
        "co_firstlineno",
        "graph_op_count",
        "guard_count",
        "fail_type",
        "restart_reasons",
    )
    theirs = [
        (_id(data), *(data["compilation_metrics"].get(field) for field in fields))
        for kind, data in read.records()
        if kind == "compilation_metrics" and data["compilation_metrics"].get("is_forward") is not False
    ]
    ours = [(one.id, *(one.metrics.get(field) for field in fields)) for one in _finished(read.ours)]
    assert sorted(map(str, ours)) == sorted(map(str, theirs))


def test_the_same_stacks(read: Read) -> None:
    table = next(data["string_table"] for data in read.theirs if "string_table" in data)
    theirs = Counter(
        (_id(data), *((table[frame["filename"]], frame["line"]) for frame in data["dynamo_start"]["stack"]))
        for kind, data in read.records()
        if kind == "dynamo_start" and data.get("attempt", 0) == 0
    )
    ours = Counter(
        (one.id, *((frame.file, frame.line) for frame in one.stack)) for one in read.ours.compilations if one.stack
    )
    assert ours == theirs


def test_the_same_pinned_sizes_and_symbols(read: Read) -> None:
    pinned = Counter(
        (source, data[kind]["value"])
        for kind, data in read.records()
        if kind == "symbolic_shape_specialization"
        for source in data[kind]["sources"]
    )
    assert Counter((one.source, one.value) for c in read.ours.compilations for one in c.pinned) == pinned
    symbols = Counter(data[kind]["symbol"] for kind, data in read.records() if kind == "create_symbol")
    assert Counter(one.symbol for c in read.ours.compilations for one in c.symbols) == symbols


def test_nothing_is_damaged_or_unknown(read: Read) -> None:
    assert (read.ours.damaged, dict(read.ours.unknown), list(reading.problems([read.source]))) == (0, {}, [])


def _finished(process: Process) -> list[Compilation]:
    return [one for one in process.compilations if one.metrics]


def _steady(text: str) -> str:
    try:
        return json.dumps(json.loads(text), sort_keys=True)
    except ValueError:
        return text.rstrip("\n")
