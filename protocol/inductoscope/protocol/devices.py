"""The devices a run can be for, and the figures of every GPU that can be simulated.

Plain data, standard library only: the command line and the server list and parse device names without torch.  How a
device is simulated is none of this module's business.

Where the figures come from, by field:

- `name`, `memory_mib`, `l2_mib`, `clock_mhz`: what the vendor's driver reports for the card (`nvidia-smi -q`,
  `torch.cuda.get_device_properties`); `clock_mhz` is the highest multiprocessor clock.
- `bandwidth_gbps`, `bus_bits`, `tensor_tflops`, `float32_tflops`: the vendor's datasheet named in `source`.  HBM
  bandwidth is given as memory clock x bus width where the datasheet rounds it.
- `multiprocessors`: the datasheet (streaming multiprocessors, compute units on AMD).
- `limits`: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability", and
  the allocation units of the CUDA occupancy calculator; for AMD the CDNA3 instruction set guide (32 waves of 64 lanes a
  compute unit, 64 KiB of LDS, 512 vector registers a lane and SIMD).
"""

from __future__ import annotations

import enum
import re
from collections.abc import Sequence
from dataclasses import dataclass


class Vendor(enum.Enum):
    """Who makes the device; decides between the CUDA and the HIP side of the compiler."""

    NVIDIA = "nvidia"
    AMD = "amd"


@dataclass(frozen=True)
class Limits:
    """What one multiprocessor can hold at a time, and in which units it is handed out.

    `shared_*` are bytes: the most one block may opt in to, all of it, what the driver keeps for each block, and the
    allocation unit.  `registers` are 32 bits wide, `register_unit` is their allocation unit for a whole warp.
    """

    threads: int
    blocks: int
    shared_per_block: int
    shared: int
    shared_reserved: int
    shared_unit: int
    registers: int = 65536
    register_unit: int = 256
    warp: int = 32


@dataclass(frozen=True)
class FigureSource:
    """Where one figure of a device comes from, in words."""

    figure: str
    source: str


@dataclass(frozen=True)
class Device:
    """A GPU as data.

    `arch` is the compiler's name for it (`sm_90`, `gfx942`).  Sizes with `_mib` are MiB.  `bandwidth_gbps` is 1e9
    bytes a second, the `*_tflops` are 1e12 operations a second without sparsity: `tensor_tflops` for 16-bit matrix
    units, `float32_tflops` for plain float32 arithmetic.  `source` says where the figures come from, `sources` where
    single ones do that have another origin; see `source_of`.
    """

    key: str
    name: str
    vendor: Vendor
    arch: str
    multiprocessors: int
    memory_mib: int
    bandwidth_gbps: float
    bus_bits: int
    clock_mhz: int
    l2_mib: float
    tensor_tflops: float
    float32_tflops: float
    limits: Limits
    source: str
    aliases: tuple[str, ...] = ()
    sources: tuple[FigureSource, ...] = ()

    @property
    def is_amd(self) -> bool:
        """Whether the HIP side of the compiler builds for it."""
        return self.vendor is Vendor.AMD

    @property
    def capability(self) -> tuple[int, int]:
        """Compute capability (major, minor); gfx942 reports (9, 4)."""
        digits = self.arch.removeprefix("sm_").removeprefix("gfx")
        return (int(digits[0]), int(digits[1])) if self.is_amd else (int(digits[:-1]), int(digits[-1]))

    @property
    def memory_bytes(self) -> int:
        """Device memory in bytes, as the driver reports it."""
        return self.memory_mib << 20

    @property
    def text(self) -> str:
        """The device as the user writes it: `sim:H200`."""
        return f"sim:{self.key}"


_TURING = Limits(threads=1024, blocks=16, shared_per_block=65536, shared=65536, shared_reserved=0, shared_unit=256)
_AMPERE = Limits(threads=2048, blocks=32, shared_per_block=166912, shared=167936, shared_reserved=1024, shared_unit=128)
_ADA = Limits(threads=1536, blocks=24, shared_per_block=101376, shared=102400, shared_reserved=1024, shared_unit=128)
_HOPPER = Limits(threads=2048, blocks=32, shared_per_block=232448, shared=233472, shared_reserved=1024, shared_unit=128)
_BLACKWELL = _HOPPER
_CDNA3 = Limits(
    threads=2048,
    blocks=32,
    shared_per_block=65536,
    shared=65536,
    shared_reserved=0,
    shared_unit=512,
    registers=131072,
    register_unit=512,
    warp=64,
)

DEVICES: tuple[Device, ...] = (
    Device(
        key="T4",
        name="Tesla T4",
        vendor=Vendor.NVIDIA,
        arch="sm_75",
        multiprocessors=40,
        memory_mib=14912,
        bandwidth_gbps=320,
        bus_bits=256,
        clock_mhz=1590,
        l2_mib=4,
        tensor_tflops=65,
        float32_tflops=8.1,
        limits=_TURING,
        source="NVIDIA T4 Tensor Core GPU datasheet; compute capability 7.5",
    ),
    Device(
        key="A100",
        name="NVIDIA A100-SXM4-80GB",
        vendor=Vendor.NVIDIA,
        arch="sm_80",
        multiprocessors=108,
        memory_mib=81152,
        bandwidth_gbps=2039,
        bus_bits=5120,
        clock_mhz=1410,
        l2_mib=40,
        tensor_tflops=312,
        float32_tflops=19.5,
        limits=_AMPERE,
        source="NVIDIA A100 80GB Tensor Core GPU datasheet (SXM); compute capability 8.0",
        aliases=("A100SXM", "A10080GB", "A100SXM80GB"),
    ),
    Device(
        key="L40S",
        name="NVIDIA L40S",
        vendor=Vendor.NVIDIA,
        arch="sm_89",
        multiprocessors=142,
        memory_mib=45589,
        bandwidth_gbps=864,
        bus_bits=384,
        clock_mhz=2520,
        l2_mib=96,
        tensor_tflops=362,
        float32_tflops=91.6,
        limits=_ADA,
        source="NVIDIA L40S GPU datasheet; compute capability 8.9",
    ),
    Device(
        key="RTX4090",
        name="NVIDIA GeForce RTX 4090",
        vendor=Vendor.NVIDIA,
        arch="sm_89",
        multiprocessors=128,
        memory_mib=24076,
        bandwidth_gbps=1008,
        bus_bits=384,
        clock_mhz=3105,
        l2_mib=72,
        tensor_tflops=165,
        float32_tflops=82.6,
        limits=_ADA,
        source="NVIDIA Ada architecture whitepaper, GeForce RTX 4090 (float32 accumulation); compute capability 8.9",
        aliases=("4090",),
    ),
    Device(
        key="H100",
        name="NVIDIA H100 80GB HBM3",
        vendor=Vendor.NVIDIA,
        arch="sm_90",
        multiprocessors=132,
        memory_mib=81090,
        bandwidth_gbps=3352,
        bus_bits=5120,
        clock_mhz=1980,
        l2_mib=50,
        tensor_tflops=989,
        float32_tflops=67,
        limits=_HOPPER,
        source="NVIDIA H100 Tensor Core GPU datasheet (SXM); compute capability 9.0",
        aliases=("H100SXM", "H100SXM5", "H10080GB"),
    ),
    Device(
        key="H200",
        name="NVIDIA H200",
        vendor=Vendor.NVIDIA,
        arch="sm_90",
        multiprocessors=132,
        memory_mib=143158,
        bandwidth_gbps=4917,
        bus_bits=6144,
        clock_mhz=1980,
        l2_mib=60,
        tensor_tflops=989,
        float32_tflops=67,
        limits=_HOPPER,
        source="NVIDIA H200 Tensor Core GPU datasheet (SXM); compute capability 9.0; driver figures read on a card",
        aliases=("H200SXM", "H200141GB"),
    ),
    Device(
        key="B200",
        name="NVIDIA B200",
        vendor=Vendor.NVIDIA,
        arch="sm_100",
        multiprocessors=148,
        memory_mib=182642,
        bandwidth_gbps=8000,
        bus_bits=8192,
        clock_mhz=1965,
        l2_mib=126,
        tensor_tflops=2250,
        float32_tflops=75,
        limits=_BLACKWELL,
        source="NVIDIA HGX B200 datasheet, one of eight GPUs; compute capability 10.0",
    ),
    Device(
        key="MI300X",
        name="AMD Instinct MI300X",
        vendor=Vendor.AMD,
        arch="gfx942",
        multiprocessors=304,
        memory_mib=196592,
        bandwidth_gbps=5300,
        bus_bits=8192,
        clock_mhz=2100,
        l2_mib=256,
        tensor_tflops=1307,
        float32_tflops=163.4,
        limits=_CDNA3,
        source="AMD Instinct MI300X datasheet (l2_mib is the Infinity Cache); CDNA3 instruction set guide",
        aliases=("MI300",),
    ),
)


FIGURES = (
    "name",
    "arch",
    "multiprocessors",
    "memory_mib",
    "bandwidth_gbps",
    "bus_bits",
    "clock_mhz",
    "l2_mib",
    "tensor_tflops",
    "float32_tflops",
    "limits",
)
"""The fields of `Device` that are facts of the hardware."""

_DRIVER = "the vendor's driver, as it reports the card"
_GUIDE = 'CUDA C++ Programming Guide, "Technical Specifications per Compute Capability"'
_CDNA_GUIDE = "AMD CDNA3 instruction set guide"


def source_of(device: Device, figure: str) -> str:
    """Where a figure of `FIGURES` comes from, in words."""
    for told in device.sources:
        if told.figure == figure:
            return told.source
    if device not in DEVICES:
        return device.source
    if figure in ("name", "memory_mib", "l2_mib", "clock_mhz") and not (figure == "l2_mib" and device.is_amd):
        return _DRIVER
    if figure == "limits":
        return _CDNA_GUIDE if device.is_amd else _GUIDE
    return device.source


class DeviceKind(enum.Enum):
    """The sorts of device a run can be for; the value is the word before any colon in what the user writes."""

    AUTO = "auto"
    CPU = "cpu"
    CUDA = "cuda"
    SIMULATED = "sim"


@dataclass(frozen=True)
class DeviceChoice:
    """What the user asked for: `auto`, `cpu`, `cuda`, or `sim:NAME` (then `device` is set)."""

    kind: DeviceKind
    device: Device | None = None

    @property
    def text(self) -> str:
        """The canonical spelling, which `parse` reads back to an equal choice."""
        return self.device.text if self.device is not None else self.kind.value


class UnknownDeviceError(ValueError):
    """The text names no device; the message is a sentence that lists what can be named."""


class UnknownGpuError(UnknownDeviceError):
    """The text asks for a simulated GPU, by a name that is not known."""


def names(own: Sequence[Device] = ()) -> tuple[str, ...]:
    """The names of the GPUs that can be simulated, as the user writes them after `sim:`."""
    return tuple(device.key for device in (*DEVICES, *own))


def find(name: str, own: Sequence[Device] = ()) -> Device:
    """The simulated GPU of that name, in any spelling (`H200`, `nvidia-h200`, `rtx 4090`).

    `own` are GPUs that somebody described, which go by their keys alone.  Raises UnknownGpuError.
    """
    wanted = plain(name)
    for device in own:
        if wanted == plain(device.key):
            return device
    for device in DEVICES:
        if wanted in {plain(device.key), plain(device.name), *device.aliases}:
            return device
    raise UnknownGpuError(f"No GPU named {name!r} can be simulated. Known: {', '.join(names(own))}.")


def parse(text: str, own: Sequence[Device] = ()) -> DeviceChoice:
    """The device that a command line, a setting or a message names; `own` as for `find`.

    Raises UnknownDeviceError with a sentence that says what is understood.
    """
    word, colon, name = text.strip().partition(":")
    word = word.strip().lower()
    if word == DeviceKind.SIMULATED.value and colon and name.strip():
        return DeviceChoice(DeviceKind.SIMULATED, find(name, own))
    if not colon and word in {DeviceKind.AUTO.value, DeviceKind.CPU.value, DeviceKind.CUDA.value}:
        return DeviceChoice(DeviceKind(word))
    known = ", ".join(f"sim:{key}" for key in names(own))
    raise UnknownDeviceError(f"{text!r} is not a device. Understood: auto, cpu, cuda, {known}.")


def plain(name: str) -> str:
    """What the spellings of one name share: letters and digits in upper case, without the maker and the family."""
    bare = re.sub(r"[^A-Z0-9]", "", name.upper())
    for prefix in ("NVIDIA", "AMD", "GEFORCE", "TESLA", "INSTINCT"):
        bare = bare.removeprefix(prefix)
    return bare
