"""The history of benchmarks, and how it is shown."""

from __future__ import annotations

import io
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from inductoscope.protocol.bench import RoundTimes
from inductoscope.protocol.report import Benchmark, Rung, Status, TargetReport, Timing
from inductoscope.server.bench import history
from inductoscope.server.bench.history import History, HistoryError
from inductoscope.server.bench.remembering import remembered
from inductoscope.server.text import trend


def benchmark(us: float = 10.0, **fields: object) -> Benchmark:
    rounds = tuple(RoundTimes(2 * us, us * (1 + index / 1000)) for index in range(10))
    base = Benchmark("a card", "a clock", Timing(2 * us, 1, 10), Timing(us, 1, 10), 2.0, rounds=rounds)
    return replace(base, **{"inputs": ("f32[4]",), **fields})


def report(file: Path, found: Benchmark, *more: Benchmark) -> TargetReport:
    return TargetReport(str(file), "f", 1, "cuda", Rung.MEASURE, Status.COMPILED, benchmark=found, benchmarks=more)


@pytest.fixture
def kept(tmp_path) -> History:
    return History(tmp_path / "cache" / "benchmarks.sqlite", tmp_path)


def test_results_come_back_whole_the_oldest_first(kept, tmp_path):
    file = tmp_path / "model.py"
    for us in (30.0, 20.0, 10.0):
        kept.add(report(file, benchmark(us)), "abc1234", "2.13.0")
    entries = kept.of(file)
    assert [one.benchmark for one in entries] == [benchmark(30.0), benchmark(20.0), benchmark(10.0)]
    assert {(one.file, one.target, one.revision, one.torch) for one in entries} == {
        ("model.py", "f", "abc1234", "2.13.0")
    }


def test_only_results_under_the_same_conditions_are_compared(kept, tmp_path):
    file = tmp_path / "model.py"
    kept.add(report(file, benchmark(10.0), benchmark(20.0, inputs=("f32[8]",))), None, None)
    assert kept.last(report(file, benchmark()), benchmark()).benchmark.compiled.us == 10.0
    for other in ({"inputs": ("f32[16]",)}, {"mode": "max-autotune"}, {"where": "another card"}):
        assert kept.last(report(file, benchmark()), benchmark(**other)) is None
    assert kept.last(report(tmp_path / "other.py", benchmark()), benchmark()) is None


def test_what_was_refused_is_no_result(kept, tmp_path):
    kept.add(report(tmp_path / "model.py", benchmark(refused="The rounds disagree.")), None, None)
    assert kept.of(tmp_path / "model.py") == ()


def test_a_damaged_history_is_a_sentence(kept, tmp_path):
    kept.path.parent.mkdir()
    kept.path.write_bytes(b"no database at all" * 100)
    with pytest.raises(HistoryError, match="delete the file"):
        kept.of(tmp_path / "model.py")


def test_a_history_of_a_newer_version_is_left_alone(kept, tmp_path):
    kept.add(report(tmp_path / "model.py", benchmark()), None, None)
    with sqlite3.connect(kept.path) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(HistoryError, match="newer"):
        kept.add(report(tmp_path / "model.py", benchmark()), None, None)


def test_a_series_does_not_grow_for_ever(kept, tmp_path, monkeypatch):
    monkeypatch.setattr(history, "_KEPT", 3)
    for us in (1.0, 2.0, 3.0, 4.0, 5.0):
        kept.add(report(tmp_path / "model.py", benchmark(us)), None, None)
    assert [one.benchmark.compiled.us for one in kept.of(tmp_path / "model.py")] == [3.0, 4.0, 5.0]


async def test_a_result_learns_what_became_of_the_one_before(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "pyproject.toml").write_text("")
    file = tmp_path / "model.py"
    first = await remembered(report(file, benchmark(20.0)), "2.13.0")
    assert first.benchmark.change is None
    second = await remembered(report(file, benchmark(10.0)), "2.13.0")
    assert second.benchmark.change.ratio == pytest.approx(2.0)
    assert second.benchmark.change.beyond_noise
    assert [one.torch for one in history.of_workspace(file).of(file)] == ["2.13.0", "2.13.0"]


async def test_a_history_that_cannot_be_written_costs_no_result(tmp_path, monkeypatch):
    (tmp_path / "cache").write_text("a file where a folder should be")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    found = await remembered(report(tmp_path / "model.py", benchmark()), None)
    assert found.benchmark == benchmark()
    assert any("cannot be used" in note for note in found.notes)


def test_a_plot_rises_and_falls_with_the_times():
    lines = trend.plot([10.0, 20.0, 40.0], rows=4)
    columns = list(zip(*(line.partition("┤")[2] for line in lines), strict=True))
    heights = [sum(block != " " for block in column) for column in columns]
    assert heights == [1, 2, 4]
    assert lines[0].startswith("40.0 µs")


def test_the_trend_tells_real_changes_from_noise(kept, tmp_path):
    file = tmp_path / "model.py"
    for us in (20.0, 20.1, 10.0):
        kept.add(report(file, benchmark(us)), "abc1234", "2.13.0")
    console = Console(file=io.StringIO(), width=140)
    console.print(*trend.shown(kept.of(file)), sep="\n")
    told = console.file.getvalue()
    assert "f of model.py on a card, forward, inputs f32[4]" in told
    assert told.count("within noise") == 1
    assert "2.01x faster" in told
