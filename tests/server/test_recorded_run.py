"""`inductoscope run` is not there as far as program and caller can tell: status, signals, streams, arguments."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from inductoscope.server import recorded_run


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}


def start(environment: dict[str, str], *command: str, given: str = "") -> subprocess.CompletedProcess[str]:
    script = "import sys; from inductoscope.server.cli import main; sys.exit(main())"
    whole = [sys.executable, "-c", script, "run", *command]
    return subprocess.run(whole, env=environment, input=given, capture_output=True, text=True, timeout=60, check=False)


def python(program: str) -> list[str]:
    return ["--", sys.executable, "-c", program]


@pytest.mark.parametrize("status", [0, 1, 7, 255])
def test_the_exit_status_is_the_programs(environment: dict[str, str], status: int) -> None:
    assert start(environment, "--quiet", *python(f"raise SystemExit({status})")).returncode == status


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV])
def test_a_signal_that_ends_the_program_ends_the_command(environment: dict[str, str], number: signal.Signals) -> None:
    assert start(environment, "--quiet", *python(f"import os; os.kill(os.getpid(), {number})")).returncode == -number


def test_a_signal_to_the_command_reaches_the_program(environment: dict[str, str]) -> None:
    program = """
import signal, sys
def stop(number, frame):
    print("asked to stop", flush=True)
    sys.exit(3)
signal.signal(signal.SIGTERM, stop)
print("ready", flush=True)
signal.pause()
"""
    script = "import sys; from inductoscope.server.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", script, "run", "--quiet", *python(program)]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGTERM)
        assert process.stdout.readline() == "asked to stop\n"
        assert process.wait(30) == 3


def test_streams_are_the_programs(environment: dict[str, str]) -> None:
    program = "import sys; print(sys.stdin.read() + str(sys.argv[1:])); sys.stderr.write('to the side')"
    done = start(environment, "--quiet", *python(program), "--json", "-x", given="given ")
    assert (done.stdout, done.stderr) == ("given ['--json', '-x']\n", "to the side")


def test_a_program_that_compiles_nothing_is_told_so(environment: dict[str, str]) -> None:
    done = start(environment, sys.executable, "-c", "print(1)")
    assert done.stdout == "1\n"
    assert "The program compiled nothing" in done.stderr


def test_a_program_that_is_not_there(environment: dict[str, str]) -> None:
    done = start(environment, "no-such-program")
    assert (done.returncode, done.stderr) == (127, "inductoscope: There is no program called no-such-program.\n")


def test_a_file_that_is_no_program(environment: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("text")
    done = start(environment, str(tmp_path / "file"))
    assert done.returncode == 126
    assert "cannot be run: Permission denied" in done.stderr


def test_no_program_at_all(environment: dict[str, str]) -> None:
    done = start(environment, "--")
    assert done.returncode == 2
    assert "Name the program to run" in done.stderr


def test_a_folder_that_cannot_be_made(environment: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = start(environment, "--folder", str(tmp_path / "file" / "inner"), *python("print(1)"))
    assert (done.returncode, done.stdout) == (2, "")
    assert "Records cannot be written" in done.stderr


def test_old_recordings_go(environment: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(recorded_run, "KEPT_RUNS", 3)
    above = tmp_path / "cache" / "inductoscope" / "recordings"
    for day in range(1, 6):
        (above / f"2001010{day}-000000-1").mkdir(parents=True)
    made = recorded_run._folder(None)
    assert sorted(above.iterdir()) == [above / "20010104-000000-1", above / "20010105-000000-1", made]


def test_the_path_of_the_program_is_kept(tmp_path: Path) -> None:
    found = recorded_run.environment(tmp_path, {"PYTHONPATH": "/a:/b", "HOME": "/h"})
    assert found["PYTHONPATH"].endswith(f"recorder/site{os.pathsep}/a:/b")
    assert found["HOME"] == "/h"
