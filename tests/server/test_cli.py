"""The command from its arguments to its streams and exit status, with a scripted worker as the user's interpreter."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from inductoscope.protocol import codec
from inductoscope.protocol.messages import FailureKind
from inductoscope.protocol.report import Finding, Report, Rung, Severity
from inductoscope.server.cli import main
from support.fake_worker import Script

MODEL = "import torch\nENTRY = 'f'\ndef get_inputs(): ...\ndef f(x):\n    return x\n"
BREAK = codec.to_json(Finding("graph-break", Severity.WARNING, "m.py", 5, 4, 5, 12, "It breaks.", Rung.CAPTURE))
DONE = Script().hello().take_run().done()

Command = Callable[..., int]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    monkeypatch.setenv("NO_COLOR", "1")
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "model.py").write_text(MODEL)
    return tmp_path


def run(script: Script, *arguments: str) -> int:
    """`inductoscope ARGUMENTS` in the current folder, with a worker that plays `script`."""
    folder = Path.cwd() / ".fake"
    folder.mkdir(exist_ok=True)
    return main([*arguments, "--python", script.interpreter(folder)])


def parsed(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """What was printed as JSON, which has to be a report."""
    value = json.loads(capsys.readouterr().out)
    codec.from_json(Report, value)
    return value


def test_json_holds_the_workers_report_with_relative_paths(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = Script().hello().take_run().done(findings=[{**BREAK, "file": str(project / "model.py")}])
    assert run(script, "check", "model.py", "--json") == 0
    report = parsed(capsys)
    assert (report["schema"], report["torch"], report["message"]) == (1, "2.13.0", None)
    (target,) = report["targets"]
    assert (target["file"], target["name"], target["line"], target["status"]) == ("model.py", "f", 4, "compiled")
    assert target["findings"][0]["file"] == "model.py"


def test_auto_is_the_cpu_without_triton_and_a_simulated_gpu_with_it(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(DONE, "check", "model.py", "--json")
    assert parsed(capsys)["targets"][0]["device"] == "cpu"
    run(Script().hello(triton="3.7.1").take_run().done(), "check", "model.py", "--json")
    expected = "sim:H200" if sys.platform == "linux" else "cpu"
    assert parsed(capsys)["targets"][0]["device"] == expected


def test_the_project_decides_what_the_command_does_not(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "pyproject.toml").write_text('[tool.inductoscope]\ndevice = "sim:A100"\nrung = "capture"\n')
    run(DONE, "check", "model.py", "--json")
    target = parsed(capsys)["targets"][0]
    assert (target["device"], target["rung"]) == ("sim:A100", "capture")
    run(DONE, "check", "model.py", "--json", "--device", "cpu", "--rung", "lower")
    target = parsed(capsys)["targets"][0]
    assert (target["device"], target["rung"]) == ("cpu", "lower")


@pytest.mark.parametrize(
    ("fail_on", "status"), [("", 0), ("recompile", 0), ("break", 1), ("warning", 1), ("error", 0), ("any", 1)]
)
def test_exit_status_of_findings(project: Path, fail_on: str, status: int) -> None:
    script = Script().hello().take_run().done(findings=[BREAK])
    assert run(script, "check", "model.py", "--fail-on", fail_on) == status


@pytest.mark.parametrize(
    ("script", "sentence"),
    [
        pytest.param(Script().hello().take_run().exit(3), "ended with exit code 3", id="crash"),
        pytest.param(
            Script().hello().take_run().failed(FailureKind.IMPORT, "There is no module x."), "no module x", id="import"
        ),
        pytest.param(Script().hello(problem="This Python has no torch."), "has no torch", id="no torch"),
        pytest.param(Script().exit(1), "ended with exit code 1 while it started", id="dead"),
        pytest.param(
            Script().hello().take_run().done(status="not-run", message="It refuses."), "It refuses.", id="refused"
        ),
    ],
)
def test_what_cannot_be_checked_is_a_sentence_and_status_2(
    project: Path, capsys: pytest.CaptureFixture[str], script: Script, sentence: str
) -> None:
    assert run(script, "check", "model.py", "--json", "--fail-on", "any") == 2
    out, err = capsys.readouterr()
    assert sentence in json.loads(out)["message"]
    assert err.startswith("inductoscope: ") and sentence in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["no.py"], "There is no file no.py."),
        (["notes.txt"], "notes.txt is not a Python file (its name does not end in .py)."),
        (["empty"], "There is no Python file in empty, so there is nothing to check."),
        (["plain"], "plain, in its 1 Python file, has nothing to compile"),
        (["plain/p.py"], "p.py has nothing to compile: no torch.compile,"),
        (["broken.py"], "Line 1 is not valid Python: "),
        (["binary.py"], "binary.py is not Python text: "),
        (["idle.py"], "Nothing says with which inputs to call g"),
        (["model.py", "--target", "g"], "There is nothing called g in model.py."),
        (["model.py", "--device", "gpu"], "--device: 'gpu' is not a device."),
        (["model.py", "--rung", "fly"], "--rung fly is none of capture, lower, assemble, measure."),
        (["model.py", "--timeout", "0"], "--timeout 0 has to be above 0."),
        (["x" * 5000 + ".py"], "cannot be read: File name too long."),
        (["model.py", "--fail-on", "brake"], "--fail-on brake names no finding."),
        (["model.py", "--show", "cakes"], "--show cakes is none of kernels,"),
        (["model.py", "--python", "/no/python"], "There is no Python interpreter /no/python (--python)"),
    ],
)
def test_mistakes_are_one_sentence_in_both_forms(
    project: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str
) -> None:
    (project / "notes.txt").touch()
    (project / "empty").mkdir()
    (project / "plain").mkdir()
    (project / "plain" / "p.py").write_text("x = 1\n")
    (project / "broken.py").write_text("def (:\n")
    (project / "binary.py").write_bytes(b"\x80\x81")
    (project / "idle.py").write_text("import torch\n@torch.compile\ndef g(x): ...\n")
    assert main(["check", *arguments]) == 2
    assert sentence in capsys.readouterr().err
    assert main(["check", *arguments, "--json"]) == 2
    out, err = capsys.readouterr()
    assert sentence in json.loads(out)["message"]
    assert err.startswith("inductoscope: ") and err.count("\n") == 1


def test_a_broken_project_file_is_named(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "pyproject.toml").write_text("[tool.inductoscope]\ntimeout = 'long'\n")
    assert main(["check", "model.py"]) == 2
    assert "pyproject.toml, line 2: timeout of [tool.inductoscope] has to be a number" in capsys.readouterr().err


def test_a_folder_is_checked_as_a_whole(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "pyproject.toml").write_text('[tool.inductoscope]\nexclude = ["old/*"]\n')
    for name in ("b/second.py", "a/first.py", "old/third.py"):
        (project / name).parent.mkdir()
        (project / name).write_text(MODEL)
    (project / "a" / "plain.py").write_text("x = 1\n")
    (project / "a" / "idle.py").write_text("import torch\n@torch.compile\ndef g(x): ...\n")
    assert run(DONE, "check", ".", "--json") == 0
    targets = parsed(capsys)["targets"]
    assert [(target["file"], target["status"]) for target in targets] == [
        ("a/first.py", "compiled"),
        ("a/idle.py", "no-inputs"),
        ("b/second.py", "compiled"),
        ("model.py", "compiled"),
    ]


def test_one_bad_path_does_not_keep_the_others_from_being_checked(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(DONE, "check", "no.py", "model.py", "--json") == 2
    report = parsed(capsys)
    assert [target["status"] for target in report["targets"]] == ["compiled"]
    assert report["message"] == "There is no file no.py."


def test_a_target_can_be_named_also_one_that_the_file_does_not_compile(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "model.py").write_text("def f(x): ...\ndef g(x): ...\ndef get_inputs(): ...\n")
    assert run(DONE, "check", "model.py", "--json", "--target", "g") == 0
    assert [target["name"] for target in parsed(capsys)["targets"]] == ["g"]


def test_text_for_people_is_plain_when_piped(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)  # which pytest's workers have
    script = Script().hello().take_run().done(findings=[{**BREAK, "file": str(project / "model.py")}])
    assert run(script, "check", "model.py") == 0
    out, err = capsys.readouterr()
    assert out == (
        "f  model.py:4  CPU  compiled\n"
        "\n"
        "  warning graph-break  model.py:5:5\n"
        "     5 |     return x\n"
        "       |     ^^^^^^^^\n"
        "    It breaks.\n"
        "\n"
        "torch 2.13.0, Python 3.11.0\n"
        "next: look at graph-break model.py:5; `inductoscope watch model.py` tells what each edit changes\n"
    )
    assert err == ""


def test_verbose_shows_what_the_program_prints(project: Path) -> None:
    script = Script().hello().take_run().say("hello from the program").done()
    interpreter = script.interpreter(project)
    done = subprocess.run(
        [sys.executable, "-m", "inductoscope", "check", "model.py", "-v", "--python", interpreter],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "hello from the program" in done.stderr
    assert "hello from the program" not in done.stdout


def test_bench_asks_for_a_measurement(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(DONE, "bench", "model.py", "--json") == 0
    target = parsed(capsys)["targets"][0]
    assert (target["rung"], target["device"]) == ("measure", "cpu")


def test_devices_and_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["devices"]) == 0
    out = capsys.readouterr().out
    assert "sim:H200" in out and "sm_90" in out and "\ncpu " in out
    assert main(["version"]) == 0
    assert capsys.readouterr().out.startswith("inductoscope ")


def test_help_does_not_import_what_it_does_not_need() -> None:
    code = (
        "import sys\nfrom inductoscope.server.cli import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        "print([name for name in ('torch', 'rich', 'pygls', 'lsprotocol') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("[]\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_command_and_every_worker(project: Path, number: signal.Signals) -> None:
    pids = [project / "worker", project / "child"]
    script = Script().hello().take_run().write_pid(pids[0]).fork_hanging(pids[1]).say("ready").hang()
    command = [sys.executable, "-m", "inductoscope", "check", "model.py", "-v", "--python", script.interpreter(project)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert any("ready" in line for line in process.stderr)
        process.send_signal(number)
        assert process.wait(timeout=30) == 128 + number
    for path in pids:
        assert _gone(int(path.read_text()))


def test_a_reader_that_has_seen_enough_is_no_error(project: Path) -> None:
    interpreter = DONE.interpreter(project)
    command = f"{sys.executable} -m inductoscope check model.py --json --python {interpreter} | head -c 1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("{", "")


def _gone(pid: int) -> bool:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                return True
        except psutil.NoSuchProcess:
            return True
        os.sched_yield()
    return False


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "inf"])
def test_a_benchmark_takes_some_time(project: Path, capsys: pytest.CaptureFixture[str], seconds: str) -> None:
    assert main(["bench", "model.py", "--seconds", seconds]) == 2
    assert f"--seconds {seconds} has to be a number above 0." in capsys.readouterr().err


def test_a_log_that_cannot_be_written_is_told(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--log-file", str(project / "none" / "log")]) == 2
    assert "The log cannot be written to" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("inputs", "why"), [("x=f32[4,,8]", "expected a size (a whole number), found ','"), ("", "no inputs are given")]
)
def test_inputs_that_cannot_be_read_are_refused_before_anything_runs(
    project: Path, capsys: pytest.CaptureFixture[str], inputs: str, why: str
) -> None:
    assert main(["guards", "model.py", "--with", "x=f32[4]", "--with", inputs]) == 2
    printed = capsys.readouterr()
    assert printed.err.startswith(f"inductoscope: --with '{inputs}' cannot be read: {why}")
    assert (printed.err.count("\n"), printed.out) == (1, "")
