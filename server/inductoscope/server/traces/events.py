"""The timeline of a trace: `chromium_event` records (2.5 to 2.15), summed up to phases."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

from inductoscope.server.traces.lines import Spans, payload_bytes
from inductoscope.server.traces.process import Process
from inductoscope.server.traces.run import PhaseSum


def phases(processes: Iterable[Process]) -> tuple[PhaseSum, ...]:
    """How long each phase took without the phases inside of it, over all processes, the longest first."""
    counts: Counter[str] = Counter()
    own: dict[str, float] = {}
    for process in processes:
        for name, ms in _own_times(_events(process)):
            counts[name] += 1
            own[name] = own.get(name, 0.0) + ms
    found = (PhaseSum(name, counts[name], ms) for name, ms in own.items())
    return tuple(sorted(found, key=lambda one: -one.ms))


def _own_times(events: Iterable[dict[str, Any]]) -> Iterator[tuple[str, float]]:
    """Phases begin (`B`) and end (`E`) inside of each other; an end without a beginning is left out."""
    opened: dict[object, list[list[Any]]] = {}
    for event in events:
        stack = opened.setdefault(event.get("tid"), [])
        name, at = event.get("name"), event.get("ts")
        if not isinstance(name, str) or not isinstance(at, int | float):
            continue
        if event.get("ph") == "B":
            stack.append([name, float(at), 0.0])
        elif event.get("ph") == "E" and any(one[0] == name for one in stack):
            while stack[-1][0] != name:  # what was left by an exception
                stack.pop()
            _, began, inside = stack.pop()
            took = (float(at) - began) / 1e3
            if stack:
                stack[-1][2] += took
            yield name, took - inside


def _events(process: Process) -> Iterator[dict[str, Any]]:
    if len(process.events) == 0:
        return
    try:
        with process.file.open("rb") as file:
            for spans in process.events:
                event = _event(file, spans)
                if event is not None:
                    yield event
    except OSError:
        return


def _event(file: BinaryIO, spans: Spans) -> dict[str, Any] | None:
    try:
        data = json.loads(payload_bytes(file, spans))
    except ValueError:
        return None
    return data if isinstance(data, dict) else None
