"""What `auto` means for the worker at hand."""

from __future__ import annotations

import sys
from pathlib import Path

from inductoscope.protocol.devices import DeviceKind
from inductoscope.protocol.messages import Hello
from inductoscope.protocol.report import Rung

SIMULATED = "sim:H200"
"""The device of a check when the user names none: a GPU that the newest compiler back ends are tuned for."""

_GPU_NODES = ("/dev/nvidia0", "/dev/kfd", "/dev/dxg")


def resolve(device: str, rung: Rung, hello: Hello) -> str:
    """The device that `device` stands for.

    A check is simulated where that is possible, which takes Triton and Linux, else it is for the CPU.  A measurement is
    on a GPU where there is one and this torch can use it.
    """
    if device != DeviceKind.AUTO.value:
        return device
    if rung is Rung.MEASURE:
        return DeviceKind.CUDA.value if _has_gpu(hello) else DeviceKind.CPU.value
    return SIMULATED if hello.triton is not None and sys.platform == "linux" else DeviceKind.CPU.value


def _has_gpu(hello: Hello) -> bool:
    built_for_gpus = hello.torch is not None and not hello.torch.endswith("+cpu")
    there = any(Path(node).exists() for node in _GPU_NODES) if hello.gpu is None else hello.gpu
    return built_for_gpus and there
