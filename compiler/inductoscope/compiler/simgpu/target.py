"""The device in force.  Everything that is patched asks this object, so that a forked child can change the device."""

from __future__ import annotations

from typing import Any

from inductoscope.compiler.card.replay import Replay
from inductoscope.protocol.devices import Device


class DeviceProperties:
    """What `torch.cuda.get_device_properties()` returns: the same names as torch's own object."""

    def __init__(self, device: Device) -> None:
        self.fill(device)

    def fill(self, device: Device) -> None:
        """Take over the figures of `device`; whoever holds this object sees them."""
        limits = device.limits
        self.name = device.name
        self.major, self.minor = device.capability
        self.total_memory = device.memory_bytes
        self.multi_processor_count = device.multiprocessors
        self.regs_per_multiprocessor = limits.registers
        self.max_threads_per_multi_processor = limits.threads
        self.max_threads_per_block = 1024
        self.warp_size = limits.warp
        self.shared_memory_per_block = limits.shared_per_block if device.is_amd else 49152
        self.shared_memory_per_block_optin = limits.shared_per_block
        self.shared_memory_per_multiprocessor = limits.shared
        self.L2_cache_size = int(device.l2_mib * 2**20)
        self.clock_rate = device.clock_mhz * 1000  # kHz, as the two below
        self.memory_clock_rate = int(device.bandwidth_gbps * 8e6 / 2 / device.bus_bits)
        self.memory_bus_width = device.bus_bits
        self.is_integrated = 0
        self.is_multi_gpu_board = 0
        self.gcnArchName = f"{device.arch}:sramecc+:xnack-" if device.is_amd else device.arch
        self.uuid = "GPU-simulated"
        self.pci_bus_id = self.pci_device_id = self.pci_domain_id = 0

    def __repr__(self) -> str:
        return f"_CudaDeviceProperties(name={self.name!r}, major={self.major}, minor={self.minor}, simulated)"


class TargetDevice:
    """Holds the device in force, its properties object, and what torch decided on the card where that was recorded."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.replay = Replay()
        self.properties: Any = DeviceProperties(device)

    def change(self, device: Device) -> None:
        """Make `device` the one in force."""
        self.device = device
        self.properties.fill(device)
