"""The simulated side: the product's own lowering records what it generates."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType
from typing import Any

import torch

from fidelity_tools import running
from fidelity_tools.record import (
    Assembled,
    KernelRecord,
    LibraryCall,
    ProgramRecord,
    Texts,
    calls_in,
    kernel_text,
    wrapper_text,
)
from inductoscope.compiler import simgpu
from inductoscope.compiler.lower import Depth, LowerFacts, Lowering
from inductoscope.compiler.predict import predict
from inductoscope.compiler.usercode import UserCode
from inductoscope.protocol import devices, own_devices
from inductoscope.protocol.own_devices import OwnDevice
from inductoscope.protocol.report import Kernel, KernelLanguage, Predicted


def _problems(facts: LowerFacts) -> Iterator[str]:
    """What went wrong without ending the program."""
    yield from (one.message for one in facts.findings if one.code == "compile-error")
    yield from facts.problems


def _times(predicted: Predicted | None) -> tuple[float | None, tuple[float, float] | None]:
    if predicted is None:
        return None, None
    return predicted.us, (predicted.low_us or predicted.us, predicted.high_us or predicted.us)


def _operator(name: str) -> str:
    """`extern_kernels.mm` and `torch.ops.aten.mm.default` by the operator's own name."""
    parts = name.removeprefix("torch.ops.").split(".")
    return parts[1] if len(parts) > 1 else parts[0]


class SimulatedSide:
    """Runs programs on the simulated `device` of this process (a name or a device file); `assemble` builds kernels."""

    def __init__(self, device: str, *, assemble: bool) -> None:
        own = own_devices.read_file(Path(device)) if device.endswith(".json") else OwnDevice(devices.find(device))
        self._device = own.device
        self._assemble = assemble
        self._simulation = simgpu.simulate(self._device)
        if own.recording is not None:
            self._simulation.replaying(own.recording)

    def made(self) -> dict[str, Any]:
        """Where and with what this side runs."""
        import triton

        return {"device": f"sim:{self._device.name}", "torch": torch.__version__, "triton": triton.__version__}

    def record(self, group: str, make: FunctionType, texts: Texts) -> ProgramRecord:
        """One program."""
        running.begin()
        self._simulation.clear()
        begun, error, looked = time.perf_counter(), None, ()
        # All of it is the user's here: nobody asks for lines.
        lowering = Lowering(UserCode(also=()), f"sim:{self._device.name}", Depth.KERNELS)
        try:
            with lowering:
                looked = running.run(make())
        except Exception as raised:
            error = running.in_one_line(raised)
        facts = lowering.facts()
        wrappers = [wrapper.source for wrapper in facts.wrappers]
        return ProgramRecord(
            group=group,
            seconds=time.perf_counter() - begun,
            error=error or next(_problems(facts), None),
            kernels=tuple(self._kernels(facts.kernels, texts)),
            wrappers=tuple(texts.keep(wrapper_text(source)) for source in wrappers),
            calls=tuple(map(calls_in, wrappers)),
            library=tuple(self._library(facts.kernels)),
            looked=looked,
            notes=tuple(note.text for note in self._simulation.notes()),
        )

    def _kernels(self, kernels: tuple[Kernel, ...], texts: Texts) -> list[KernelRecord]:
        found: dict[tuple[str, str], KernelRecord] = {}
        for kernel in kernels:
            if kernel.language is not KernelLanguage.TRITON or kernel.source is None:
                continue
            name = texts.keep(kernel_text(kernel.source))
            if (kernel.name, name) not in found:
                found[kernel.name, name] = self._kernel(kernel, name)
        return list(found.values())

    def _kernel(self, kernel: Kernel, sha256: str) -> KernelRecord:
        built = self._assembled(kernel.source or "") if self._assemble else ()
        return KernelRecord(kernel.name, sha256, None, built, *_times(predict(kernel, self._device)))

    def _library(self, kernels: tuple[Kernel, ...]) -> Iterator[LibraryCall]:
        for kernel in kernels:
            if kernel.language is KernelLanguage.EXTERN:
                predicted = predict(kernel, self._device)
                yield LibraryCall(_operator(kernel.name), kernel.operands, None, *_times(predicted))

    def _assembled(self, source: str) -> tuple[Assembled, ...]:
        with self._simulation.off():
            built = simgpu.assemble(source, self._device)
        return tuple(
            Assembled(
                {**one.config, "num_warps": one.num_warps, "num_stages": one.num_stages},
                one.registers,
                one.spills,
                one.shared_bytes,
            )
            for one in built
        )
