"""`inductoscope devices`: the list with every figure's source, and recording, with a scripted worker."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from inductoscope.protocol import codec, devices, own_devices
from inductoscope.protocol.devices import DEVICES, FIGURES
from inductoscope.protocol.messages import FailureKind
from inductoscope.protocol.own_devices import OwnDevice
from inductoscope.protocol.recording import RecordedPadding, Recording
from inductoscope.server import recording
from inductoscope.server.cli import main
from support.fake_worker import Script

MODEL = "import torch\nENTRY = 'f'\ndef get_inputs(): ...\ndef f(x):\n    return x\n"
MADE = Recording("NVIDIA H200", "2.11.0", driver="580.1")
CARD = OwnDevice(replace(devices.find("H200"), key="my-H200", aliases=(), source="a card"), MADE)
PADDING = RecordedPadding("key", (1, 8, 7, 9), True, 3.0, 1.0)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "160")  # no line is wrapped
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "model.py").write_text(MODEL)
    return tmp_path


def run(script: Script, *arguments: str) -> int:
    folder = Path.cwd() / ".fake"
    folder.mkdir(exist_ok=True)
    return main([*arguments, "--python", script.interpreter(folder)])


def recorded(decisions: Recording | None = None, card: OwnDevice | None = CARD) -> Script:
    made: tuple[Any, Any] = (codec.to_json(card), codec.to_json(decisions))
    return Script().hello().take_run().recorded(*made)


def test_every_figure_is_listed_with_its_source(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["devices"]) == 0
    out = capsys.readouterr().out
    for device in DEVICES:
        section = out.split(f"\n{device.text}\n")[1].split("\nsim:")[0]
        rows = [line.split()[0] for line in section.splitlines() if line.startswith("  ") and line[2] != " "]
        assert rows == list(FIGURES)
    assert "NVIDIA H100 Tensor Core GPU datasheet (SXM)" in out and "the vendor's driver" in out


def test_devices_of_the_project_and_of_files_are_listed_too(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = '[tool.inductoscope.devices.box]\nbase = "H100"\nbandwidth_gbps = 2000\nsource = "my log"\n'
    (project / "pyproject.toml").write_text(table)
    (project / "card.json").write_text(own_devices.to_text(CARD))
    assert main(["devices", "--json", "box", "card.json", "sim:t4"]) == 0
    box, card, t4 = json.loads(capsys.readouterr().out)
    assert (box["device"], box["figures"]["bandwidth_gbps"]) == ("sim:box", {"value": 2000, "source": "my log"})
    assert card["recording"]["driver"] == "580.1"
    assert (t4["device"], t4["recording"], list(t4["figures"])) == ("sim:T4", None, list(FIGURES))
    assert main(["devices", "card.json"]) == 0
    assert "recorded on a NVIDIA H200 with torch 2.11.0, driver 580.1" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["Q1"], "No GPU named 'Q1' can be simulated."),
        (["none.json"], "none.json cannot be read"),
        (["-o", "x.json"], "belong to --record"),
        (["--record", "--timeout", "0"], "--timeout 0 has to be above 0."),
    ],
)
def test_what_cannot_be_done_is_one_sentence(
    project: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert main(["devices", *arguments]) == 2
    captured = capsys.readouterr()
    assert message in captured.err and captured.out == ""


def test_a_card_is_recorded_under_the_name_of_its_file(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    decided = replace(MADE, paddings=(PADDING,))
    assert run(recorded(decided), "devices", "--record", "model.py", "-o", "lab.json") == 0
    assert "lab.json: NVIDIA H200, 1 padding, 0 choices between kernels, 0 kernels" in capsys.readouterr().out
    own = own_devices.read_file(project / "lab.json")
    assert own.device.key == "lab"
    assert own.recording == replace(MADE, paddings=(PADDING,))


def test_without_files_the_figures_alone_go_to_standard_output(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(recorded(), "devices", "--record") == 0
    table = json.loads(capsys.readouterr().out)
    assert (table["key"], table["base"], table["recording"]["paddings"]) == ("my-H200", "H200", [])


def test_without_a_card_there_is_a_sentence_and_no_file(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = Script().hello().take_run().failed(FailureKind.DEVICE, "There is no GPU here.")
    assert run(script, "devices", "--record", "model.py", "-o", "lab.json") == 2
    assert capsys.readouterr().err == "inductoscope: There is no GPU here.\n"
    assert not (project / "lab.json").exists()


def test_a_target_that_cannot_be_recorded_is_told_and_the_rest_is_written(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(recorded(None), "devices", "--record", "model.py", "-o", "lab.json") == 2
    assert "The worker told nothing of f." in capsys.readouterr().err
    assert own_devices.read_file(project / "lab.json").recording == MADE


def test_decisions_of_another_version_are_left_out_with_a_sentence() -> None:
    other = Recording("NVIDIA H200", "2.12.0", paddings=(PADDING,))
    merged, why = recording.merge(MADE, [other, replace(MADE, paddings=(PADDING,)), replace(MADE, paddings=(PADDING,))])
    assert merged.paddings == (PADDING,)
    assert why == (
        "What torch 2.12.0 decided is left out: a recording holds the decisions of one version, here 2.11.0.",
    )


@pytest.mark.parametrize(("file", "key"), [("lab.json", "lab"), ("h200.json", "my-H200"), ("a b.json", "my-H200")])
def test_the_name_of_a_file_that_can_be_none_is_not_taken(file: str, key: str) -> None:
    assert recording.called(CARD, Path(file)).device.key == key


def test_a_run_is_told_the_figures_of_a_device_of_ones_own(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "pyproject.toml").write_text('[tool.inductoscope.devices.box]\nbase = "H100"\nclock_mhz = 1234\n')
    (project / "lab.json").write_text('{"base": "A100", "clock_mhz": 999}')
    script = Script().hello().take_run().report_own()
    for device, expected in (("sim:BOX", "sim:box 1234"), ("sim:lab.json", "sim:lab 999"), ("sim:H200", "sim:H200 -")):
        assert run(script, "check", "model.py", "--json", "--device", device) == 0
        assert json.loads(capsys.readouterr().out)["targets"][0]["message"] == expected


def test_a_device_that_nobody_describes_stops_a_check(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(recorded(), "check", "model.py", "--device", "sim:abacus") == 2
    assert "--device: No GPU named 'abacus' can be simulated." in capsys.readouterr().err
