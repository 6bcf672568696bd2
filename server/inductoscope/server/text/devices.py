"""Devices as text: every figure with its source, and what was recorded on a card."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from inductoscope.protocol import codec, devices
from inductoscope.protocol.devices import FIGURES, Device
from inductoscope.protocol.own_devices import OwnDevice
from inductoscope.protocol.recording import Recording
from inductoscope.server import words
from inductoscope.server.text.blocks import gap, indented, paragraph

_UNITS = {
    "memory_mib": "MiB",
    "bandwidth_gbps": "GB/s",
    "bus_bits": "bits",
    "clock_mhz": "MHz",
    "l2_mib": "MiB",
    "tensor_tflops": "TFLOP/s",
    "float32_tflops": "TFLOP/s",
}


def overview(shown: Sequence[OwnDevice]) -> RenderableType:
    """What `--device` takes, a line each, then every figure of `shown` with its source."""
    table = Table(box=None, pad_edge=False)
    for title in ("device", "what it is", "arch", "memory", "bandwidth"):
        table.add_column(title, no_wrap=title != "what it is")
    table.add_row("auto", "sim:H200 where it can be simulated, else cpu", "", "", "")
    table.add_row("cpu", "this machine's processor: C++ kernels", "", "", "")
    table.add_row("cuda", "a GPU of this machine", "", "", "")
    for one in shown:
        device = one.device
        memory, bandwidth = f"{device.memory_mib / 1024:.0f} GiB", f"{device.bandwidth_gbps / 1000:.1f} TB/s"
        table.add_row(device.text, f"{device.name}, simulated", device.arch, memory, bandwidth)
    return Group(table, *(details(one) for one in shown))


def details(own: OwnDevice) -> RenderableType:
    """Every figure of a device with its source, and what its recording holds."""
    device = own.device
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(max_width=40, overflow="fold")
    table.add_column(overflow="fold")
    for figure in FIGURES:
        table.add_row(figure, _value(device, figure), devices.source_of(device, figure))
    return Group(gap(), Text(device.text, "bold"), indented(table), *_recording(own.recording))


def as_json(shown: Sequence[OwnDevice]) -> list[dict[str, Any]]:
    """The same as plain JSON values."""
    return [
        {
            "device": one.device.text,
            "figures": {
                figure: {
                    "value": codec.to_json(getattr(one.device, figure)),
                    "source": devices.source_of(one.device, figure),
                }
                for figure in FIGURES
            },
            "recording": codec.to_json(one.recording),
        }
        for one in shown
    ]


def holds(recording: Recording) -> str:
    """What a recording holds: `3 paddings, 1 choice between kernels, 12 kernels`."""
    return ", ".join(
        (
            words.count(len(recording.paddings), "padding"),
            words.count(len(recording.choices), "choice between kernels", "choices between kernels"),
            words.count(len(recording.kernels), "kernel"),
        )
    )


def _value(device: Device, figure: str) -> str:
    if figure == "limits":
        limits = dataclasses.asdict(device.limits)
        return ", ".join(f"{name} {value}" for name, value in limits.items())
    value = getattr(device, figure)
    number = f"{value:g}" if isinstance(value, float) and value < 1e5 else str(value)
    return f"{number} {_UNITS[figure]}" if figure in _UNITS else number


def _recording(recording: Recording | None) -> Iterator[RenderableType]:
    if recording is None:
        return
    driver = f", driver {recording.driver}" if recording.driver else ""
    made = f"recorded on a {recording.card} with torch {recording.torch}{driver}: {holds(recording)}"
    yield paragraph(made, indent=2)
    for one in recording.measured:
        yield paragraph(f"measured: {one.what} {one.value:g} {one.unit}, {one.method}", indent=2)
