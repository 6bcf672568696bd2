"""The settings of a project, and every way to write them wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from inductoscope.protocol.report import Rung
from inductoscope.server.config import Config, ConfigError, Probing, nearest, parse_bytes, read


def write(folder: Path, text: str) -> Path:
    path = folder / "pyproject.toml"
    path.write_text(f'[project]\nname = "x"\n\n[tool.inductoscope]\n{text}\n')
    return path


def test_everything_that_can_be_set(tmp_path: Path) -> None:
    (tmp_path / "pkg").mkdir()
    model = tmp_path / "pkg" / "model.py"
    model.touch()
    config = read(
        write(
            tmp_path,
            'device = "h200"\n'.replace("h200", "sim:h200")
            + 'paths = ["pkg"]\n'
            + 'rung = "capture"\ntimeout = 20\nmemory = "2GiB"\npython = "env/bin/python"\n'
            + 'targets = ["pkg/model.py::Model", "pkg/model.py::attend"]\nexclude = ["old/*", "gen"]\nprobe = "off"',
        )
    )
    assert (config.device, config.rung, config.timeout_s) == ("sim:H200", Rung.CAPTURE, 20.0)
    assert config.memory_bytes == 2 << 30
    assert config.probe is Probing.OFF
    assert config.python == str(tmp_path / "env/bin/python")
    assert config.paths == (str(tmp_path / "pkg"),)
    assert config.wanted(model) == ("Model", "attend")
    assert config.wanted(tmp_path / "other.py") == ()


def test_exclude_takes_patterns_of_files_and_folders(tmp_path: Path) -> None:
    config = read(write(tmp_path, 'exclude = ["old/*", "gen/"]'))
    excluded = [name for name in ("old/a.py", "gen/deep/b.py", "new/old/a.py") if config.excludes(tmp_path / name)]
    assert excluded == ["old/a.py", "gen/deep/b.py"]


def test_the_nearest_file_counts_and_none_is_fine(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    write(tmp_path, "timeout = 1")
    write(tmp_path / "a", "timeout = 2")
    assert nearest(inner).timeout_s == 2
    (tmp_path / "a" / "pyproject.toml").write_text("")
    assert nearest(inner) == Config(path=tmp_path / "a" / "pyproject.toml")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('device = "gpu"', "line 5: device of [tool.inductoscope] has to be a device ('gpu' is not a device."),
        ('rung = "fly"', "line 5: rung of [tool.inductoscope] has to be one of capture, lower, assemble."),
        ("timeout = 0", "line 5: timeout of [tool.inductoscope] has to be a number of seconds above 0."),
        ("timeout = true", "line 5: timeout"),
        ('memory = "lots"', "line 5: memory of [tool.inductoscope] has to be an amount of memory ('lots' is no amount"),
        ('\ntargets = ["model.py"]', 'line 6: targets of [tool.inductoscope] has to be a list of "FILE::NAME"'),
        ('targets = ["no.py::f"]', "there is no file no.py."),
        (
            'paths = ["gone"]',
            "line 5: paths of [tool.inductoscope] has to be a list of folders, and there is no folder",
        ),
        ("exclude = [1]", "line 5: exclude of [tool.inductoscope] has to be a list of texts."),
        ("probe = false", 'line 5: probe of [tool.inductoscope] has to be "on" or "off".'),
        ("python = 3", "line 5: python of [tool.inductoscope] has to be a text."),
        ('devise = "cpu"', "line 5: devise is no setting of [tool.inductoscope]; is device meant?"),
        ("zzz = 1", "zzz is no setting of [tool.inductoscope]; known are device,"),
        ("x = [", "is not valid TOML"),
        ("devices = 3", "line 5: devices of [tool.inductoscope] has to hold a table for each GPU."),
        ("devices.box = 3", "line 5: the device box has to be a table of figures."),
        ("devices.box = {clock_mhz = 3}", "line 5: a device needs `base`"),
        (
            '\n[tool.inductoscope.devices.box]\nbase = "H100"\nclock_mhz = 0',
            "line 8: clock_mhz has to be a whole number",
        ),
        ('\n[tool.inductoscope.devices.box]\nbase = "H100"\nclok_mhz = 0', "line 8: clok_mhz is no figure of a device"),
        (
            '[tool.inductoscope.devices.a]\nbase = "H100"\n[tool.inductoscope.devices.b]\nbase = "Q"',
            "line 8: base has to be a known GPU",
        ),
        (
            '[tool.inductoscope.devices.a]\nbase = "H100"\n[tool.inductoscope.devices.a.limits]\nwarps = 2',
            "line 8: warps is no limit of a device; is warp meant?",
        ),
        (
            '[tool.inductoscope.devices.H200]\nbase = "H100"',
            "line 5: H200 is a device that Inductoscope knows by itself",
        ),
        (
            'device-files = ["gone.json"]',
            "line 5: device-files of [tool.inductoscope] has to be a list of files, and there",
        ),
        ('device = "sim:box"', "line 5: device of [tool.inductoscope] has to be a device (No GPU named 'box'"),
    ],
)
def test_mistakes_are_sentences_with_file_and_line(tmp_path: Path, text: str, message: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        read(path)
    assert str(caught.value).startswith(str(path))
    assert message in str(caught.value)


def test_devices_of_ones_own_in_tables_files_and_folders(tmp_path: Path) -> None:
    (tmp_path / "gpus").mkdir()
    (tmp_path / "gpus" / "one.json").write_text('{"base": "A100", "clock_mhz": 1000}')
    (tmp_path / "two.json").write_text('{"key": "second", "base": "one"}')
    text = 'device = "sim:BOX"\ndevice-files = ["gpus", "two.json"]\n'
    config = read(write(tmp_path, text + '[tool.inductoscope.devices.box]\nbase = "second"\nmemory_mib = 1000\n'))
    assert [own.device.key for own in config.own] == ["one", "second", "box"]
    assert config.device == "sim:box"
    box = config.own[-1].device
    assert (box.clock_mhz, box.memory_mib, box.source) == (1000, 1000, str(config.path))


def test_a_device_file_that_cannot_be_used_is_told_with_its_own_place(tmp_path: Path) -> None:
    (tmp_path / "one.json").write_text('{"base": "A100",\n"clock_mhz": "fast"}')
    with pytest.raises(ConfigError, match=r"one\.json, line 2: clock_mhz has to be a whole number above 0\."):
        read(write(tmp_path, 'device-files = ["one.json"]'))


def test_a_table_that_is_none_and_a_file_that_is_no_text(tmp_path: Path) -> None:
    path = tmp_path / "pyproject.toml"
    path.write_text("[tool]\ninductoscope = 1\n")
    with pytest.raises(ConfigError, match="has to be a table"):
        read(path)
    path.write_text("tool = 3\n")
    with pytest.raises(ConfigError, match=r"\[tool\] has to be a table"):
        read(path)
    path.write_text("a = " + "[" * 100_000)
    with pytest.raises(ConfigError, match="nested too deeply"):
        read(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="cannot be read"):
        read(path)
    path.write_text("a = " + "9" * 5000)
    with pytest.raises(ConfigError, match="cannot be read: Exceeds the limit"):
        read(path)


@pytest.mark.parametrize(
    ("text", "count"), [("8GiB", 8 << 30), ("500 MB", 500 * 10**6), ("1.5kb", 1500), ("1000000", 1000000)]
)
def test_amounts_of_memory(text: str, count: int) -> None:
    assert parse_bytes(text) == count


@pytest.mark.parametrize("text", ["", "-1", "0", "8 giraffes", "GiB"])
def test_no_amounts_of_memory(text: str) -> None:
    with pytest.raises(ValueError, match="no amount of memory"):
        parse_bytes(text)
