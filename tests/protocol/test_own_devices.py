"""GPUs that somebody describes: what a table becomes, and what is said of one that cannot be used."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from inductoscope.protocol import codec, devices, own_devices
from inductoscope.protocol.devices import DEVICES, FIGURES, Vendor
from inductoscope.protocol.own_devices import OwnDevice, OwnDeviceError
from inductoscope.protocol.recording import (
    Measured,
    RecordedChoice,
    RecordedKernel,
    RecordedPadding,
    Recording,
    TimedConfig,
    TimedWay,
)

RECORDING = Recording(
    "NVIDIA H200",
    "2.11.0",
    "3.6.0",
    "13.0",
    "580.1",
    (Measured("copy", 4100.5, "GB/s", "copy of 1 GiB"),),
    (RecordedPadding("(a, 'key')", (1, 8, 7, 9), True, 3.5, 1.25),),
    (RecordedChoice("mm", "[('cuda', 'f16', 8)]", (TimedWay("mm (library call)", 2.0), TimedWay("triton_mm")), "mm"),),
    (RecordedKernel("ab" * 32, (TimedConfig({"XBLOCK": 64}, 4, 1, 5.0),), TimedConfig({"XBLOCK": 64}, 4, 1, 5.0)),),
)


def test_figures_that_are_not_given_are_those_of_the_base() -> None:
    own = own_devices.read("box", {"base": "h100", "bandwidth_gbps": 2000, "limits": {"blocks": 16}}, "here.toml")
    base = devices.find("H100")
    assert replace(own.device, key="H100", sources=(), source=base.source, aliases=base.aliases) == replace(
        base, bandwidth_gbps=2000, limits=replace(base.limits, blocks=16)
    )
    assert own.device.text == "sim:box"


def test_every_figure_has_a_source() -> None:
    table = {"base": "H100", "bandwidth_gbps": 2000, "clock_mhz": 1500, "sources": {"clock_mhz": "a log"}}
    device = own_devices.read("box", table, "here.toml").device
    assert devices.source_of(device, "bandwidth_gbps") == "here.toml"
    assert devices.source_of(device, "clock_mhz") == "a log"
    assert devices.source_of(device, "tensor_tflops").startswith("H100: NVIDIA H100")
    named = own_devices.read("box", {**table, "source": "a datasheet"}, "here.toml").device
    assert devices.source_of(named, "bandwidth_gbps") == "a datasheet"


@pytest.mark.parametrize("device", DEVICES, ids=lambda device: device.key)
def test_every_figure_of_a_known_device_has_a_source(device: devices.Device) -> None:
    assert all(devices.source_of(device, figure) for figure in FIGURES)


def test_a_device_can_be_based_on_one_that_was_described_before() -> None:
    first = own_devices.read("first", {"base": "A100", "clock_mhz": 1000}, "a")
    second = own_devices.read("second", {"base": "first", "l2_mib": 0.5}, "b", (first,))
    assert (second.device.clock_mhz, second.device.l2_mib, second.device.arch) == (1000, 0.5, "sm_80")


@pytest.mark.parametrize(
    "key, table, entry, message",
    [
        ("box", [], None, "the device box has to be a table"),
        ("box", {}, None, "a device needs `base`"),
        ("box", {"base": "Q9"}, "base", "base has to be a known GPU (No GPU named 'Q9'"),
        ("box", {"base": "H100", "bandwith_gbps": 1}, "bandwith_gbps", "is bandwidth_gbps meant?"),
        ("box", {"base": "H100", "bandwidth_gbps": -1}, "bandwidth_gbps", "has to be a number above 0"),
        ("box", {"base": "H100", "bandwidth_gbps": float("nan")}, "bandwidth_gbps", "has to be a number above 0"),
        ("box", {"base": "H100", "memory_mib": 1.5}, "memory_mib", "has to be a whole number above 0"),
        ("box", {"base": "H100", "memory_mib": True}, "memory_mib", "has to be a whole number above 0"),
        ("box", {"base": "H100", "name": ""}, "name", "name has to be a text"),
        ("box", {"base": "H100", "arch": "gfx942"}, "arch", "such as sm_90"),
        ("box", {"base": "MI300X", "arch": "sm_90"}, "arch", "such as gfx942"),
        ("box", {"base": "H100", "limits": 3}, "limits", "limits has to be a table"),
        ("box", {"base": "H100", "limits": {"thread": 1}}, "thread", "is threads meant?"),
        ("box", {"base": "H100", "limits": {"threads": "many"}}, "threads", "has to be a whole number above 0"),
        ("box", {"base": "H100", "sources": {"speed": "x"}}, "speed", "is no figure of a device"),
        ("box", {"base": "H100", "recording": {"card": 1}}, "recording", "is not what `inductoscope devices --record`"),
        ("a box", {"base": "H100"}, None, "'a box' is no name for a device"),
        ("nvidia-h200", {"base": "H100"}, None, "is a device that Inductoscope knows by itself"),
    ],
)
def test_what_cannot_be_used_is_said_with_its_entry(key: str, table: Any, entry: str | None, message: str) -> None:
    with pytest.raises(OwnDeviceError) as raised:
        own_devices.read(key, table, "here")
    assert message in str(raised.value)
    assert raised.value.entry == entry


def test_two_devices_of_one_name_are_refused() -> None:
    first = own_devices.read("my-box", {"base": "A100"}, "a")
    with pytest.raises(OwnDeviceError, match="two devices called MYBOX"):
        own_devices.read("MYBOX", {"base": "A100"}, "b", (first,))


def test_names_are_found_in_any_spelling_and_unknown_ones_listed() -> None:
    own = (own_devices.read("my-box", {"base": "A100"}, "a"),)
    assert own_devices.named("sim:MY BOX", own) == ("sim:my-box", own[0])
    assert own_devices.named("sim:h200", own) == ("sim:H200", None)
    with pytest.raises(devices.UnknownGpuError, match="MI300X, my-box"):
        own_devices.named("sim:other", own)


def test_a_device_file_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    own = OwnDevice(own_devices.read("box", {"base": "H200", "clock_mhz": 1700, "source": "me"}, "a").device, RECORDING)
    (tmp_path / "box.json").write_text(own_devices.to_text(own))
    assert own_devices.read_file(tmp_path / "box.json") == own
    assert own_devices.read_file(tmp_path / "box.json").identity == own.identity
    lines = (tmp_path / "box.json").read_text().splitlines()
    assert sum("XBLOCK" in line for line in lines) == 1


def test_a_device_file_without_a_key_goes_by_its_own_name(tmp_path: Path) -> None:
    (tmp_path / "box.json").write_text('{"base": "T4"}')
    assert own_devices.read_file(tmp_path / "box.json").device.key == "box"


@pytest.mark.parametrize(
    "text, message",
    [
        ('{"base": "T4",\n "clock_mhz": 0}', "box.json, line 2: clock_mhz has to be a whole number above 0."),
        ('{"base": "T4",\n }', "box.json, line 2: this is not valid JSON"),
        ("[]", "box.json: the device box has to be a table of figures."),
        ('{"clok_mhz": 1, "base": "T4"}', "box.json, line 1: clok_mhz is no figure of a device; is clock_mhz meant?"),
        (
            '{"sources": {"l2_mib": "me"},\n "l2_mib": -1,\n "base": "T4"}',
            "box.json, line 2: l2_mib has to be a number",
        ),
        ('{"l2_mib": 4, "base": "T4", "sources": {\n "l2_mib": 1}}', "box.json, line 2: l2_mib has to be a text."),
        ('{"base": "T4", "limits": {"blocks": 4,\n "warp": 0}}', "box.json, line 2: warp has to be a whole number"),
        ('{"source": "a: \\"l2_mib\\": 4",\n "l2_mib": [1],\n "base": "T4"}', "box.json, line 2: l2_mib has to be"),
        (f'{{"base": "T4", "clock_mhz": {"9" * 5000}}}', "cannot be read: a number in it has too many digits."),
        (f'{{"base": "T4", "clock_mhz": {"9" * 12}}}', "above 0, at most 2147483647."),
        ('{"base": "T4", "l2_mib": 1e-9}', "above 0, at least 0.001."),
    ],
    ids=range(11),
)
def test_a_device_file_that_cannot_be_used_is_one_sentence(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "box.json").write_text(text)
    with pytest.raises(OwnDeviceError) as raised:
        own_devices.read_file(tmp_path / "box.json")
    assert message in str(raised.value)
    assert not str(raised.value).endswith("?.")


def test_a_device_file_may_begin_with_the_mark_of_its_encoding(tmp_path: Path) -> None:
    (tmp_path / "box.json").write_text('{"base": "T4"}', encoding="utf-8-sig")
    assert own_devices.read_file(tmp_path / "box.json").device.arch == "sm_75"


def test_a_folder_is_no_device_file(tmp_path: Path) -> None:
    with pytest.raises(OwnDeviceError) as raised:
        own_devices.read_file(tmp_path)
    assert str(raised.value) == f"The device file {tmp_path} cannot be read: Is a directory."


def test_a_missing_device_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(OwnDeviceError, match="cannot be read"):
        own_devices.read_file(tmp_path / "none.json")


@pytest.mark.parametrize(
    "arch, name, multiprocessors, expected",
    [
        ("sm_90", "NVIDIA H200", 132, "H200"),
        ("sm_90", "NVIDIA GH200", 132, "H100"),
        ("sm_89", "NVIDIA L4", 58, "RTX4090"),
        ("sm_86", "NVIDIA A10", 72, "RTX4090"),
        ("sm_70", "Tesla V100", 80, "T4"),
    ],
)
def test_the_nearest_device(arch: str, name: str, multiprocessors: int, expected: str) -> None:
    assert own_devices.nearest(arch, Vendor.NVIDIA, name, multiprocessors).key == expected


def test_a_described_device_travels_in_a_message() -> None:
    own = OwnDevice(own_devices.read("box", {"base": "H200"}, "a").device, RECORDING)
    assert codec.from_json(OwnDevice, json.loads(json.dumps(codec.to_json(own)))) == own
