"""The figures of the card in this machine, each with its source: driver, measurement, or a known card's datasheet."""

from __future__ import annotations

import logging
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch

from inductoscope.protocol import devices, own_devices
from inductoscope.protocol.devices import FIGURES, Device, FigureSource, Limits, Vendor
from inductoscope.protocol.own_devices import OwnDevice
from inductoscope.protocol.recording import Measured, Recording

logger = logging.getLogger(__name__)

Bench = Callable[[Callable[[], object]], float]
"""The median milliseconds of a call."""

_PROPERTIES = "driver, by torch.cuda.get_device_properties"
_SMI = "driver, by nvidia-smi"
_COPY_BYTES, _MATRIX = 1 << 30, 8192
_METHOD = "triton.testing.do_bench, median, L2 flushed"
_SMI_TIMEOUT_S = 20.0


@dataclass(frozen=True)
class _Figure:
    value: Any
    source: str


def read(bench: Bench | None = None) -> OwnDevice:
    """The card that torch uses.  `bench` times calls on it; without Triton nothing is measured.

    Raises RuntimeError where torch has no card.
    """
    properties = torch.cuda.get_device_properties(torch.cuda.current_device())
    smi = _smi()
    vendor = Vendor.AMD if torch.version.hip else Vendor.NVIDIA
    arch = _arch(properties, vendor)
    base = own_devices.nearest(arch, vendor, properties.name, properties.multi_processor_count)
    measured = _measured(bench or _do_bench())
    found = _figures(properties, smi, base, measured, arch)
    sources = tuple(FigureSource(name, found[name].source) for name in FIGURES)
    values = {name: found[name].value for name in FIGURES}
    source = f"recorded on a {properties.name}"
    device = replace(base, key=_key(properties.name), aliases=(), source=source, sources=sources, **values)
    return OwnDevice(device, _made(properties.name, smi, measured))


def _figures(
    properties: Any, smi: Mapping[str, str], base: Device, measured: tuple[Measured, ...], arch: str
) -> dict[str, _Figure]:
    """Every figure of `FIGURES`."""
    driver = {
        "name": properties.name,
        "arch": arch,
        "multiprocessors": properties.multi_processor_count,
        "memory_mib": properties.total_memory >> 20,
    }
    found = {name: _Figure(value, _PROPERTIES) for name, value in driver.items()}
    cache = getattr(properties, "L2_cache_size", 0)
    infinity = base.is_amd  # AMD's driver tells the L2, and the figure is that of the cache behind it
    found["l2_mib"] = _Figure(cache / 2**20, _PROPERTIES) if cache and not infinity else _of_base(base, "l2_mib")
    found |= _clock(properties, smi, base) | _memory(properties, base, measured)
    found["limits"] = _Figure(_limits(properties, base), f"{_PROPERTIES}; blocks and allocation units as of {base.key}")
    scale = found["multiprocessors"].value * found["clock_mhz"].value / (base.multiprocessors * base.clock_mhz)
    for name in ("tensor_tflops", "float32_tflops"):
        found[name] = _rate(name, base, properties.name, scale)
    return found


def _of_base(base: Device, figure: str) -> _Figure:
    return _Figure(getattr(base, figure), f"{base.key}: {devices.source_of(base, figure)}")


def _rate(figure: str, base: Device, name: str, scale: float) -> _Figure:
    """A peak rate, which no driver tells: the datasheet's for a known card, else scaled from the nearest one."""
    try:
        devices.find(name)
    except devices.UnknownDeviceError:
        value = round(getattr(base, figure) * scale, 1)
        return _Figure(
            value, f"scaled from {base.key} by multiprocessors and clock ({devices.source_of(base, figure)})"
        )
    return _of_base(base, figure)


def _clock(properties: Any, smi: Mapping[str, str], base: Device) -> dict[str, _Figure]:
    if (told := _number(smi.get("clocks.max.sm"))) is not None:
        return {"clock_mhz": _Figure(told, _SMI)}
    khz = getattr(properties, "clock_rate", 0)
    return {"clock_mhz": _Figure(khz // 1000, _PROPERTIES) if khz else _of_base(base, "clock_mhz")}


def _memory(properties: Any, base: Device, measured: tuple[Measured, ...]) -> dict[str, _Figure]:
    """Width of the memory bus and peak bandwidth: from its clock, as torch reckons it, else what a copy reached."""
    bits, khz = getattr(properties, "memory_bus_width", 0), getattr(properties, "memory_clock_rate", 0)
    width = _Figure(bits, _PROPERTIES) if bits else _of_base(base, "bus_bits")
    if bits and khz:
        peak = _Figure(round(2 * khz * bits / 8e6, 1), f"{_PROPERTIES}: memory clock x 2 x bus width")
        return {"bus_bits": width, "bandwidth_gbps": peak}
    copied = next((one for one in measured if one.unit == "GB/s"), None)
    reached = _Figure(copied.value, f"measured: {copied.method}") if copied else _of_base(base, "bandwidth_gbps")
    return {"bus_bits": width, "bandwidth_gbps": reached}


def _limits(properties: Any, base: Device) -> Limits:
    known = base.limits
    shared = getattr(properties, "shared_memory_per_multiprocessor", 0) or known.shared
    block = getattr(properties, "shared_memory_per_block_optin", 0) or known.shared_per_block
    return replace(
        known,
        threads=getattr(properties, "max_threads_per_multi_processor", 0) or known.threads,
        shared=shared,
        shared_per_block=min(block, shared),
        shared_reserved=known.shared_reserved,
        registers=getattr(properties, "regs_per_multiprocessor", 0) or known.registers,
        warp=getattr(properties, "warp_size", 0) or known.warp,
    )


def _measured(bench: Bench | None) -> tuple[Measured, ...]:
    """How fast the card copies and multiplies; nothing where that cannot be timed, which the log tells."""
    found: list[Measured] = []
    if bench is None:
        return ()
    for measure in (_copying, _multiplying):
        try:
            found += measure(bench)
        except Exception:  # a driver, a missing C compiler, and whoever else uses the card can each be in the way
            logger.warning("%s could not be timed", measure.__name__, exc_info=True)
    return tuple(found)


def _copying(bench: Bench) -> Iterator[Measured]:
    if _room() < 2 * _COPY_BYTES:
        return
    source = torch.empty(_COPY_BYTES, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    rate = 2 * _COPY_BYTES / (bench(lambda: target.copy_(source)) * 1e6)
    yield Measured("copy", round(rate, 1), "GB/s", f"copy of 1 GiB, read and written ({_METHOD})")


def _multiplying(bench: Bench) -> Iterator[Measured]:
    if _room() < 8 * _MATRIX**2:
        return
    left = torch.randn(_MATRIX, _MATRIX, dtype=torch.float16, device="cuda")
    rate = 2 * _MATRIX**3 / (bench(lambda: left @ left) * 1e9)
    yield Measured("matmul", round(rate, 1), "TFLOP/s", f"float16 matmul of {_MATRIX} cubed ({_METHOD})")


def _room() -> int:
    return int(torch.cuda.mem_get_info()[0])


def _do_bench() -> Bench | None:
    try:
        from triton.testing import do_bench
    except ImportError:
        return None
    return lambda call: float(do_bench(call, return_mode="median"))


def _made(name: str, smi: Mapping[str, str], measured: tuple[Measured, ...]) -> Recording:
    try:
        import triton

        version: str | None = triton.__version__
    except ImportError:
        version = None
    toolkit = torch.version.hip or torch.version.cuda
    return Recording(name, torch.__version__, version, toolkit, smi.get("driver_version"), measured)


def _arch(properties: Any, vendor: Vendor) -> str:
    if vendor is Vendor.AMD:
        return str(properties.gcnArchName).partition(":")[0]
    return f"sm_{properties.major}{properties.minor}"


def _key(name: str) -> str:
    """A name for `sim:` that no known card has: `my-H200`."""
    words = re.sub(r"[^A-Za-z0-9]+", "-", name.removeprefix("NVIDIA ").removeprefix("AMD ")).strip("-")
    return f"my-{words or 'GPU'}"


def _smi() -> dict[str, str]:
    """What nvidia-smi tells of the card that torch uses; nothing where it is not there."""
    program = shutil.which("nvidia-smi")
    asked = ("driver_version", "clocks.max.sm")
    if program is None:
        return {}
    uuid = str(getattr(torch.cuda.get_device_properties(torch.cuda.current_device()), "uuid", ""))
    which = [f"--id=GPU-{uuid.removeprefix('GPU-')}"] if re.search(r"\d", uuid) else ["--id=0"]
    command = [program, *which, f"--query-gpu={','.join(asked)}", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SMI_TIMEOUT_S, check=True)
    except (OSError, subprocess.SubprocessError):
        return {}
    values = done.stdout.strip().splitlines()[:1]
    return dict(zip(asked, (value.strip() for value in values[0].split(",")), strict=False)) if values else {}


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdigit() else None
