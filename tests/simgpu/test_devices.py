"""The device vocabulary: what can be written, what it means, what an error says."""

import pytest

from inductoscope.protocol import devices
from inductoscope.protocol.devices import DeviceChoice, DeviceKind


@pytest.mark.parametrize("device", devices.DEVICES, ids=lambda d: d.key)
def test_every_device_is_found_by_key_and_by_driver_name(device: devices.Device) -> None:
    assert devices.find(device.key) is device
    assert devices.find(device.name) is device
    assert devices.parse(device.text) == DeviceChoice(DeviceKind.SIMULATED, device)


@pytest.mark.parametrize("device", devices.DEVICES, ids=lambda d: d.key)
def test_figures_are_consistent(device: devices.Device) -> None:
    limits = device.limits
    assert limits.shared_per_block + limits.shared_reserved <= limits.shared
    assert limits.threads % limits.warp == 0
    assert device.source
    assert device.memory_bytes == device.memory_mib * 1024 * 1024


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("sim:h200", "H200"),
        ("SIM: nvidia-h200", "H200"),
        ("sim:rtx 4090", "RTX4090"),
        ("sim:4090", "RTX4090"),
        ("sim:Tesla T4", "T4"),
        ("sim:A100-80GB", "A100"),
        ("sim:H100 SXM5", "H100"),
        ("sim:mi300x", "MI300X"),
    ],
)
def test_spellings(text: str, key: str) -> None:
    choice = devices.parse(text)
    assert choice.device is not None
    assert choice.device.key == key
    assert devices.parse(choice.text) == choice


@pytest.mark.parametrize("word", ["auto", "cpu", "cuda"])
def test_plain_words(word: str) -> None:
    assert devices.parse(word.upper()) == DeviceChoice(DeviceKind(word))
    assert devices.parse(word).text == word


@pytest.mark.parametrize("text", ["", "sim", "sim:", "gpu", "cuda:0", "H200", "cpu:H200"])
def test_what_is_not_a_device_is_answered_with_what_is(text: str) -> None:
    with pytest.raises(devices.UnknownDeviceError, match="auto, cpu, cuda, sim:T4"):
        devices.parse(text)


def test_unknown_gpu_lists_the_known_ones() -> None:
    with pytest.raises(devices.UnknownDeviceError, match=r"'H900'.*T4, A100, .*MI300X"):
        devices.parse("sim:H900")


@pytest.mark.parametrize(
    ("key", "capability"), [("T4", (7, 5)), ("H200", (9, 0)), ("B200", (10, 0)), ("MI300X", (9, 4))]
)
def test_capability(key: str, capability: tuple[int, int]) -> None:
    assert devices.find(key).capability == capability
