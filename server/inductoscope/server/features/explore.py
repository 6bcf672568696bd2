"""All facts of a document, for panels and trees: see `inductoscope/explore` in `docs/lsp-extensions.md`."""

from __future__ import annotations

from typing import Any

from inductoscope.protocol import codec
from inductoscope.server import freshness
from inductoscope.server.snapshot import Snapshot, TargetView


def explore(snapshot: Snapshot, path: str) -> dict[str, Any]:
    """The answer for an open file."""
    return {"targets": [_target(snapshot, view, path) for view in snapshot.targets_in(path)]}


def _target(snapshot: Snapshot, view: TargetView, path: str) -> dict[str, Any]:
    result = view.good or view.failed
    moved = {}
    if result is not None:
        lines = {line for file, line in freshness.mentioned(result.report) if file == path}
        places = {line: snapshot.now_at(result, path, line) for line in sorted(lines)}
        moved = {str(line): now for line, now in places.items() if now != line}
    return {
        "name": view.target.name,
        "line": snapshot.line_of(view),
        "stale": result is not None and snapshot.is_stale(result),
        "age_s": None if result is None else round(snapshot.now - result.at, 1),
        "report": None if result is None else codec.to_json(result.report),
        "lines": moved,
    }
