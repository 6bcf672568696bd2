"""Triton's idea of the machine: a driver that names the simulated device as the target of compilation.

Nothing is launched and nothing is timed.  Triton's backends are found through its own entry points, so the `triton`
package must be installed with its metadata.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.backends.driver import DriverBase

from inductoscope.compiler.simgpu.target import TargetDevice


def install(target: TargetDevice) -> None:
    """Make Triton compile for the device of `target` (checked with Triton 3.6 to 3.9)."""
    driver = _driver_class(target)
    triton.runtime.driver.set_active(driver())
    wanted = "amd" if target.device.is_amd else "nvidia"
    for name, backend in list(triton.backends.backends.items()):
        # Inductor asks the driver class of every backend whether it is active.
        active = driver if name == wanted else _inactive(driver)
        triton.backends.backends[name] = type(backend)(compiler=backend.compiler, driver=active)


class SimulatedDriver(DriverBase):
    """Triton's driver interface, as far as compiling asks for it; subclasses say for which `target`."""

    target: TargetDevice

    def __init__(self) -> None:
        """The base class would look for a C compiler."""

    @classmethod
    def is_active(cls) -> bool:
        """Whether this is the driver of the device."""
        return True

    def map_python_to_cpp_type(self, ty: str) -> str:
        """Of no use without a launcher."""
        return ty

    def get_current_target(self) -> Any:
        """What Triton compiles for."""
        device = self.target.device
        if device.is_amd:
            return GPUTarget("hip", device.arch, device.limits.warp)
        major, minor = device.capability
        return GPUTarget("cuda", major * 10 + minor, device.limits.warp)

    def get_active_torch_device(self) -> torch.device:
        """The simulated device."""
        return torch.device("cuda", 0)

    def get_device_interface(self) -> Any:
        """What Triton synchronises by."""
        return torch.cuda

    def get_benchmarker(self) -> Any:
        """Raises NotImplementedError: nothing can be timed."""
        raise NotImplementedError("nothing can be timed on a simulated GPU")

    def get_empty_cache_for_benchmark(self) -> Any:
        """Raises NotImplementedError: nothing can be timed."""
        raise NotImplementedError("nothing can be timed on a simulated GPU")

    def get_current_device(self) -> int:
        """There is one."""
        return 0

    def set_current_device(self, device: int) -> None:
        """There is one."""

    def get_current_stream(self, device: int = 0) -> int:
        """The default stream."""
        return 0

    def get_device_capability(self, device: int = 0) -> tuple[int, int]:
        """The compute capability."""
        return self.target.device.capability


def _driver_class(target: TargetDevice) -> type:
    utils = SimpleNamespace(get_device_properties=lambda _: _figures(target))
    return type("SimulatedDriver", (SimulatedDriver,), {"target": target, "utils": utils})


def _figures(target: TargetDevice) -> dict[str, int]:
    device, limits = target.device, target.device.limits
    return {
        "max_shared_mem": limits.shared_per_block,
        "multiprocessor_count": device.multiprocessors,
        "warpSize": limits.warp,
        "max_num_regs": limits.registers,
        "sm_clock_rate": device.clock_mhz * 1000,
        "mem_clock_rate": target.properties.memory_clock_rate,
        "mem_bus_width": device.bus_bits,
    }


def _inactive(driver: type) -> type:
    return type("InactiveDriver", (driver,), {"is_active": classmethod(lambda cls: False)})
