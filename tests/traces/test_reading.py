"""Whatever a path names, there is a report or a sentence."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

from inductoscope.server.cli import main
from inductoscope.server.traces import reading
from inductoscope.server.traces.process import Process
from traces.support import artifact, record, report

FIRST = {"frame_id": 0, "frame_compile_id": 0, "attempt": 0}
STARTED = {"dynamo_start": {"stack": [{"line": 3, "name": "f", "filename": 0}]}, **FIRST}
START = record({"str": ["/p/a.py", 0]}) + record(STARTED)


def sentence(path: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    status = main(["trace", str(path)])
    return status, capsys.readouterr().err.strip()


def processes(path: Path) -> list[Process]:
    return [process for source in reading.read_files(reading.files(path)) for process in source.processes.values()]


def test_nothing_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, said = sentence(tmp_path / "none", capsys)
    assert (status, said) == (2, f"inductoscope: {tmp_path / 'none'} does not exist.")


def test_an_empty_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, said = sentence(tmp_path, capsys)
    assert status == 2
    assert said.startswith(f"inductoscope: No trace was found in {tmp_path}.")
    assert "TORCH_TRACE" in said


def test_a_file_without_records(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "picture.png"
    path.write_bytes(os.urandom(100_000))
    status, said = sentence(path, capsys)
    assert status == 2
    assert "has no records of torch.compile" in said


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "trace.log"
    path.write_text(START)
    path.chmod(0)
    status, said = sentence(path, capsys)
    assert status == 2
    assert "Permission denied" in said


def test_what_is_no_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(tmp_path / "pipe.log")
    assert "neither a file nor a folder" in sentence(tmp_path / "pipe.log", capsys)[1]
    assert "No trace was found" in sentence(tmp_path, capsys)[1]
    assert "neither a file nor a folder" in sentence(Path("/dev/zero"), capsys)[1]


def test_a_compressed_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "trace.log.gz"
    path.write_bytes(gzip.compress(START.encode()))
    assert sentence(path, capsys) == (2, f"inductoscope: {path} is compressed with gzip; unpack it first.")


def test_a_folder_with_thousands_of_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MOST_FILES", 50)
    for number in range(60):
        (tmp_path / f"{number}.log").touch()
    with pytest.raises(reading.TraceError, match="more than 50 files"):
        reading.files(tmp_path)


def test_only_files_with_records_are_taken_from_a_folder(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "dedicated_log_torch_trace_x.log").write_text(START)
    (tmp_path / "notes.txt").write_text("no records\n")
    (tmp_path / "model.py").write_text(START)
    assert [path.name for path in reading.files(tmp_path)] == ["dedicated_log_torch_trace_x.log"]


def test_a_log_that_shrinks_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "trace.log"
    path.write_text(START + artifact("dynamo_graph_break_reason", "Reason: x") * 3)
    source = reading.Source(path)
    source.read()
    path.write_text(START)
    source.read()
    source.end()
    assert [len(one.breaks) for one in source.processes[7].compilations] == [0]
    assert "became shorter" in next(reading.problems([source]))


def test_a_log_that_vanishes(tmp_path: Path) -> None:
    path = tmp_path / "trace.log"
    path.write_text(START)
    source = reading.Source(path)
    path.unlink()
    source.read()
    assert "cannot be read" in next(reading.problems([source]))


def test_damaged_records_are_counted_and_the_others_stand(tmp_path: Path) -> None:
    path = tmp_path / "trace.log"
    broken = 'V1130 14:02:03.000004 7 torch/x.py:1] {"dynamo_start": {"stack": [\n'
    no_kind = record({"rank": 0})
    wrong = record({"str": 7}) + record({"dynamo_start": [], "frame_id": 1, "frame_compile_id": 0})
    path.write_text(START + broken + no_kind + wrong)
    (process,) = processes(path)
    assert process.damaged == 4
    assert process.compilations[0].stack[0].file == "/p/a.py"
    assert "4 records are damaged" in report(path, tmp_path).problems[0]


def test_deeply_nested_json_is_no_record(tmp_path: Path) -> None:
    path = tmp_path / "trace.log"
    path.write_text(START + "V1130 14:02:03.000004 7 x.py:1] " + '{"dynamo_start":' * 100_000 + "\n")
    (process,) = processes(path)
    assert process.damaged == 1


def test_what_is_not_known_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "trace.log"
    path.write_text(START + record({"from_the_future": {"x": 1}}, "text") * 3 + artifact("new_artifact", "text"))
    found = report(path, tmp_path)
    assert found.unknown == {"from_the_future": 3}
    assert [one.name for one in found.artifacts] == ["new_artifact"]


def test_processes_in_one_file_have_names_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "all.log"
    path.write_text(
        record({"str": ["/p/a.py", 0]}, process=1)
        + record({"str": ["/p/b.py", 0]}, process=2)
        + record({**STARTED, "rank": 0}, process=1)
        + record({**STARTED, "rank": 1}, process=2)
    )
    found = {process.rank: process.compilations[0].stack[0].file for process in processes(path)}
    assert found == {0: "/p/a.py", 1: "/p/b.py"}


def test_ids_that_begin_anew_after_a_reset_are_other_compilations(tmp_path: Path) -> None:
    path = tmp_path / "trace.log"
    metrics = record({"compilation_metrics": {"co_name": "f", "graph_op_count": 2}, **FIRST})
    path.write_text(START + metrics + START + metrics)
    (process,) = processes(path)
    assert [one.id for one in process.compilations] == ["0/0", "0/0"]


def test_extract_writes_every_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "trace.log"
    path.write_text(START + artifact("../../etc/passwd", "text\n\nmore"))
    assert main(["trace", str(path), "--extract", str(tmp_path / "out")]) == 0
    (written,) = (tmp_path / "out").iterdir()
    assert written.read_text() == "text\n\nmore"
    assert "1 files written" in capsys.readouterr().out
