"""A growing trace is told line by line, each thing once."""

from __future__ import annotations

from pathlib import Path

import pytest

from inductoscope.server.text.view import View
from inductoscope.server.traces import following
from inductoscope.server.traces.following import Changes, Growing
from inductoscope.server.traces.places import Places
from traces.support import artifact, record

NUMBERS = {"frame_id": 0, "frame_compile_id": 0, "attempt": 0}
START = record({"str": ["/p/a.py", 0]}) + record(
    {"dynamo_start": {"stack": [{"line": 3, "name": "f", "filename": 0}]}, **NUMBERS}
)
BREAK = (
    "Graph break in user code at /p/a.py:5\nGraph Break Reason: Call to print\n  Explanation: no\n\n"
    'User code traceback:\n  File "/p/a.py", line 5, in f\n    print(x)\n'
)
METRICS = record({"compilation_metrics": {"co_name": "f", "graph_op_count": 2, "duration_us": 7000}, **NUMBERS})
END = record({"str": ["/p/b.py", 1]})


def news(growing: Growing, folder: Path) -> list[str]:
    growing.read()
    view = View(frozenset(), folder, lambda file, line: "")
    return list(growing.news(view, Places(folder)))


def test_each_thing_once_as_it_comes(tmp_path: Path) -> None:
    growing = Growing(tmp_path)
    assert news(growing, tmp_path) == []
    path = tmp_path / "trace.log"
    whole = START + artifact("dynamo_graph_break_reason", BREAK) + METRICS + END
    lines = []
    for end in range(0, len(whole) + 50, 50):
        path.write_text(whole[:end])
        lines += news(growing, tmp_path)
    assert lines == [
        "graph break   /p/a.py:5: Call to print",
        "compiled      0/0 f (/p/a.py:3): 7 ms, nothing to compile, 2 ops",
    ]


def test_recompiles_limits_and_skipped_functions(tmp_path: Path) -> None:
    path = tmp_path / "trace.log"
    limit = {"limit": "8", "setting": "recompile_limit", "function": "f", "file": "/p/a.py", "line": 3}
    skipped = {"function": "g", "file": "/p/a.py", "line": 9, "reason": "it is skipped"}
    path.write_text(
        START
        + METRICS
        + artifact("recompile_reasons", "0/0: tensor 'x' size mismatch at index 0. expected 3, actual 4", "0/1")
        + record({"inductoscope_limit": limit})
        + record({"inductoscope_skipped": skipped})
        + END
    )
    found = news(Growing(path), tmp_path)
    assert "recompile     0/1: the guard `tensor 'x' size mismatch at index 0. expected 3, actual 4` failed" in found
    assert any(line.startswith("gave up       f: the limit of 8 versions") for line in found)
    assert "not compiled  g (/p/a.py): it is skipped" in found


def test_several_processes_are_named(tmp_path: Path) -> None:
    for number in (1, 2):
        text = "".join(one.replace(" 7 torch", f" {number} torch") for one in (START, METRICS, END))
        (tmp_path / f"{number}.log").write_text(text)
    found = news(Growing(tmp_path), tmp_path)
    assert [line.partition("] ")[0] for line in found] == ["[process 1", "[process 2"]


def test_a_change_ends_the_waiting(tmp_path: Path) -> None:
    changes = Changes(tmp_path)
    try:
        (tmp_path / "trace.log").write_text(START)
        changes.wait(60.0)
    finally:
        changes.close()


def test_a_path_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(following.reading.TraceError, match="does not exist"):
        following.follow(tmp_path / "none")
