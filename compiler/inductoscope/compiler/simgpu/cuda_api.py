"""`torch.cuda` for one simulated device.

Only the primitives below `torch.cuda` are replaced.  Its public functions stay the same objects, so that Dynamo's rules
for them hold.  Memory statistics are empty and events measure nothing: they are not simulated.
"""

from __future__ import annotations

import importlib
import re
import sys
from typing import Any

import torch

from inductoscope.compiler.simgpu.native import CUDNN_VERSION
from inductoscope.compiler.simgpu.patching import Patches
from inductoscope.compiler.simgpu.rng import DeviceGenerator
from inductoscope.compiler.simgpu.streams import Event, Stream
from inductoscope.compiler.simgpu.target import TargetDevice

_WHY_PRIMITIVE = "torch.cuda's own functions call it, and a build without CUDA lacks it"

# What the primitives of torch._C return, whatever they are called with.
_CONSTANTS: dict[str, Any] = {
    "_cuda_getDeviceCount": 1,
    "_cuda_getDevice": 0,
    "_cuda_setDevice": None,
    "_cuda_exchangeDevice": 0,
    "_cuda_maybeExchangeDevice": 0,
    "_cuda_synchronize": None,
    "_cuda_getCurrentRawStream": 0,
    "_cuda_isCurrentStreamCapturing": False,
    "_cuda_emptyCache": None,
    "_cuda_isInBadFork": False,
    "_cuda_cudaCachingAllocator_is_enabled": True,
    "_cuda_resetPeakMemoryStats": None,
    "_cuda_resetAccumulatedMemoryStats": None,
    "_cuda_ipc_collect": None,
    "_cuda_getCompiledVersion": 13000,
    "_cuda_init": None,
    "_cuda_canDeviceAccessPeer": False,
}
_DEFAULT_STREAM = (0, 0, 1)  # stream id, device index, device type


def install(target: TargetDevice, patches: Patches) -> None:
    """Make `torch.cuda` answer for the device of `target`."""
    _primitives(target, patches)
    _state(target, patches)
    _versions(target, patches)
    for module in (torch.cuda, torch.cuda.streams):
        why = "the generic classes go through the device guard; the CUDA ones need a driver"
        patches.replace(module, "Event", Event, why=why)
        patches.replace(module, "Stream", Stream, why=why)
    _generators(patches)
    _device_interface(patches)
    _absent_names(patches)


def _primitives(target: TargetDevice, patches: Patches) -> None:
    def constant(value: Any) -> Any:
        return lambda *args, **kwargs: value

    for name, value in _CONSTANTS.items():
        patches.define(torch._C, name, constant(value), why=_WHY_PRIMITIVE)
    patches.define(torch._C, "_cuda_memoryStats", lambda *_: {}, why=_WHY_PRIMITIVE)
    patches.define(torch._C, "_cuda_getArchFlags", lambda *_: target.device.arch, why=_WHY_PRIMITIVE)
    for name in ("_cuda_getCurrentStream", "_cuda_getDefaultStream"):
        patches.define(torch._C, name, constant(_DEFAULT_STREAM), why=_WHY_PRIMITIVE)
    patches.define(torch._C, "_scatter", lambda tensor, *_: [tensor.cuda()], why="data parallel over one device")
    patches.define(torch._C, "_cuda_setStream", constant(None), why=_WHY_PRIMITIVE)
    patches.define(torch._C, "_has_cuda", True, why="the build must look like one with CUDA")
    patches.define(torch._C, "_has_cudnn", not target.device.is_amd, why="the build must look like one with cuDNN")


def _state(target: TargetDevice, patches: Patches) -> None:
    def properties(device: Any = 0) -> Any:
        index = torch.cuda._utils._get_device_index(device, optional=True)
        if index != 0:
            raise RuntimeError("CUDA error: invalid device ordinal")
        return target.properties

    def free_and_total(device: Any = None) -> tuple[int, int]:
        return target.properties.total_memory, target.properties.total_memory

    initialised = "torch.cuda must count as initialised without a driver"
    patches.replace(torch.cuda, "_initialized", True, why=initialised)
    patches.replace(torch.cuda, "_cached_device_count", 1, why=initialised)
    patches.replace(torch.cuda, "_is_in_bad_fork", lambda: False, why="the simulated device survives a fork")
    patches.define(torch.cuda, "_get_device_properties", properties, why="the figures of the device")
    for name in ("exchange", "maybe_exchange"):
        primitive = getattr(torch._C, "_cuda_exchangeDevice" if name == "exchange" else "_cuda_maybeExchangeDevice")
        patches.replace(torch.cuda, f"_{name}_device", primitive, why="bound by name when torch.cuda was imported")
    for module in (torch.cuda, torch.cuda.memory):
        patches.replace(module, "mem_get_info", free_and_total, why="asks the driver")
    for name in ("range_push", "range_pop", "mark"):
        patches.replace(torch.cuda.nvtx, name, lambda *_, **__: 0, why="needs the NVTX library")


def _versions(target: TargetDevice, patches: Patches) -> None:
    why = "programs and Inductor ask which toolkit the build has"
    amd = target.device.is_amd
    patches.replace(torch.backends.cudnn, "_init", lambda: True, why="would load cuDNN")
    patches.replace(torch.backends.cudnn, "version", lambda: None if amd else CUDNN_VERSION, why=why)
    _benchmark_limit(patches)
    if amd:
        patches.replace(torch.version, "hip", torch.version.hip or "7.0.51831", why=why)
        patches.replace(torch.version, "cuda", None, why=why)
    else:
        patches.replace(torch.version, "cuda", torch.version.cuda or "13.0", why=why)


def _benchmark_limit(patches: Patches) -> None:
    """A setting of cuDNN's that `torch.backends.cudnn.flags` reads and writes each time."""
    limit = 10  # at::Context's default

    def set_limit(value: int) -> None:
        nonlocal limit
        limit = value

    patches.define(torch._C, "_cuda_get_cudnn_benchmark_limit", lambda: limit, why=_WHY_PRIMITIVE)
    patches.define(torch._C, "_cuda_set_cudnn_benchmark_limit", set_limit, why=_WHY_PRIMITIVE)


def _generators(patches: Patches) -> None:
    cpu_generator: Any = torch.Generator

    metaclass: Any = type(cpu_generator)

    class _AnyGenerator(metaclass):
        def __instancecheck__(self, instance: object) -> bool:
            return isinstance(instance, cpu_generator)

    class Generator(cpu_generator, metaclass=_AnyGenerator):
        """torch.Generator, which also makes generators of the simulated device."""

        def __new__(cls, device: Any = "cpu") -> Any:
            return DeviceGenerator() if torch.device(device).type == "cuda" else cpu_generator("cpu")

    patches.replace(torch, "Generator", Generator, why="torch.Generator('cuda') needs a CUDA build")
    patches.replace(torch.cuda, "default_generators", (DeviceGenerator(),), why="seeding and RNG state of the device")


def _device_interface(patches: Patches) -> None:
    from torch._dynamo import device_interface

    cuda = device_interface.CudaInterface
    why = "the interface bound the primitives of a build without CUDA when it was imported"
    device_interface.caching_worker_device_properties.pop("cuda", None)
    patches.replace(cuda, "get_raw_stream", staticmethod(torch._C._cuda_getCurrentRawStream), why=why)
    patches.replace(cuda, "exchange_device", staticmethod(torch.cuda._exchange_device), why=why)
    patches.replace(cuda, "maybe_exchange_device", staticmethod(torch.cuda._maybe_exchange_device), why=why)
    patches.replace(cuda, "Event", Event, why=why)
    patches.replace(cuda, "Stream", Stream, why=why)


def _absent_names(patches: Patches) -> None:
    """`torch._dynamo.reset()` imports the CUDA graph trees where CUDA is; a CPU build lacks names that they want."""
    for _ in range(30):  # each failed import tells one name; there are fewer than ten
        try:
            importlib.import_module("torch._inductor.cudagraph_trees")
            return
        except ImportError as error:
            sys.modules.pop("torch._inductor.cudagraph_trees", None)
            name = re.search(r"cannot import name '(\w+)'", str(error))
            if name is None:
                raise
            absent = type("Absent", (), {})
            patches.define(torch._C, name[1], absent, why="imported by name by the CUDA graph trees, never called")
