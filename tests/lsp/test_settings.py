from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from inductoscope.protocol.report import Rung
from inductoscope.server.config import Probing
from inductoscope.server.folders import Folders
from inductoscope.server.settings import RunMode, Settings, read
from support.session import FakeRunner


def test_every_setting_is_read() -> None:
    value = {
        "interpreter": ["/opt/python", "-I"],
        "device": "sim:nvidia h200",
        "run": "onType",
        "rung": "capture",
        "timeout": 5,
        "memory": 2,
        "show": ["missed-fusion"],
        "hide": ["recompile"],
        "inlayHints": "off",
        "probe": "off",
        "unknown": 1,
    }
    assert read(value).settings == Settings(
        interpreter=("/opt/python", "-I"),
        device="sim:H200",
        run=RunMode.ON_TYPE,
        rung=Rung.CAPTURE,
        timeout_s=5.0,
        memory_bytes=2 * 2**20,
        show=frozenset({"missed-fusion"}),
        hide=frozenset({"recompile"}),
        inlay_hints=frozenset(),
        probe=Probing.OFF,
    )
    assert read(value).problems == ()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("interpreter", 1),
        ("interpreter", ["python", 3]),
        ("device", "gpu"),
        ("device", 7),
        ("run", "sometimes"),
        ("rung", "measure"),
        ("rung", "scan"),
        ("timeout", 0),
        ("timeout", True),
        ("memory", -1),
        ("memory", 1.5),
        ("inlayHints", True),
        ("probe", False),
        ("show", ["no-such-code"]),
        ("hide", "graph-break, recompile"),
    ],
)
def test_a_value_that_does_not_fit_is_said_and_left_out(key: str, value: Any) -> None:
    result = read({key: value, "run" if key != "run" else "timeout": "manual" if key != "run" else 7})
    (problem,) = result.problems
    assert problem.startswith(f"The setting inductoscope.{key} should be ")
    assert result.settings != Settings(), "the good value is used"


@pytest.mark.parametrize("value", [None, {}, {"device": None}])
def test_nothing_said_is_the_default(value: Any) -> None:
    assert read(value).settings == Settings()


def test_something_that_is_no_object_is_said() -> None:
    assert read([1]).settings == Settings() and len(read([1]).problems) == 1


def folders(told: list[str] | None = None) -> Folders:
    return Folders(lambda settings: FakeRunner(), (told if told is not None else []).append)


async def test_the_innermost_folder_decides() -> None:
    f = folders()
    await f.configure("/w", Settings(device="cpu"))
    await f.configure("/w/inner", Settings(device="cuda"))
    assert f.settings("/w/a.py").device == "cpu"
    assert f.settings("/w/inner/a.py").device == "cuda"
    assert f.settings("/w/inner2/a.py").device == "cpu"
    assert f.settings("/elsewhere/a.py").device == "auto"
    assert f.working_folder("/w/inner/deep/a.py") == "/w/inner"
    assert f.working_folder("/elsewhere/a.py") == "/elsewhere"


async def test_each_folder_has_a_runner_that_lives_until_the_interpreter_changes() -> None:
    f = folders()
    f.add("/w")
    runner = f.runner("/w/a.py")
    assert f.runner("/w/b.py") is runner and f.runner("/x/a.py") is not runner
    await f.configure("/w", Settings(device="cpu"))
    assert f.runner("/w/a.py") is runner
    await f.configure("/w", Settings(interpreter=("python3",)))
    assert f.runner("/w/a.py") is not runner
    await f.remove("/w")
    assert f.of("/w/a.py") == ""


async def test_the_project_fills_what_the_editor_leaves_at_its_default(tmp_path: Path) -> None:
    project = tmp_path / "pyproject.toml"
    project.write_text('[tool.inductoscope]\ndevice = "cpu"\nrung = "lower"\nmemory = "1GiB"\n')
    f = folders()
    settings = f.settings(str(tmp_path / "model.py"))
    assert (settings.device, settings.rung, settings.memory_bytes) == ("cpu", Rung.LOWER, 2**30)
    await f.configure(str(tmp_path), Settings(device="cuda"))
    assert f.settings(str(tmp_path / "model.py")).device == "cuda"


async def test_the_editor_can_name_a_device_of_the_project(tmp_path: Path) -> None:
    table = '[tool.inductoscope.devices.box]\nbase = "H100"\nclock_mhz = '
    (tmp_path / "pyproject.toml").write_text(table + "1000\n")
    told: list[str] = []
    f = folders(told)
    await f.configure(str(tmp_path), read({"device": "sim:Box"}).settings)
    settings = f.settings(str(tmp_path / "a.py"))
    assert settings.device == "sim:box" and settings.own is not None and settings.own.device.clock_mhz == 1000
    (tmp_path / "pyproject.toml").write_text(table + "1200\n")
    f.forget_projects()
    assert f.settings(str(tmp_path / "a.py")).device_identity != settings.device_identity
    assert told == []


async def test_a_device_that_no_project_describes_is_told_once(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.inductoscope]\ndevice = "cpu"\n')
    told: list[str] = []
    f = folders(told)
    await f.configure(str(tmp_path), read({"device": "sim:abacus"}).settings)
    assert [f.settings(str(tmp_path / name)).device for name in ("a.py", "b.py")] == ["cpu", "cpu"]
    (problem,) = told
    assert problem.startswith("The setting inductoscope.device should be a device (No GPU named 'abacus'")


async def test_a_project_that_cannot_be_read_is_told_once(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.inductoscope]\ndevice = 7\n")
    told: list[str] = []
    f = folders(told)
    for name in ("a.py", "b.py"):
        assert f.settings(str(tmp_path / name)) == Settings()
    f.forget_projects()
    f.settings(str(tmp_path / "a.py"))
    assert len(told) == 1 and "line 2" in told[0] and told[0].endswith("The defaults are used.")
