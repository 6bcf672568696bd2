"""Machine code of an Inductor kernel for a device, for every configuration that Inductor would try, without a card.

Which configuration wins is measured on the card; Inductor's first choice comes first.  Registers and spills are read
from the machine code, so they are what the driver would report.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inductoscope.compiler.occupancy import Occupancy, occupancy
from inductoscope.compiler.simgpu.simulation import no_static_launcher, simulate
from inductoscope.protocol.devices import Device

_SPILLS_TOLERATED = {False: 16, True: 32}  # by "is AMD": Inductor's autotuner skips configurations that spill more


class AssembleError(RuntimeError):
    """A kernel could not be assembled; the message is a sentence."""


@dataclass(frozen=True)
class Assembled:
    """One configuration of a kernel.

    `config` are the block sizes, `shared_bytes` is a block's, `registers` and `spills` (32-bit each) are a thread's
    and None where the machine code does not tell.  `rejected` says why Inductor's autotuner would not take this
    configuration.  `artifacts` maps Triton's stages (`ttir`, `ttgir`, `llir`, then `ptx` and `cubin`, or `amdgcn` and
    `hsaco`) to text or bytes.
    """

    config: Mapping[str, int]
    num_warps: int
    num_stages: int
    registers: int | None
    spills: int | None
    shared_bytes: int
    occupancy: Occupancy | None
    artifacts: Mapping[str, str | bytes]
    rejected: str | None = None

    @property
    def ptx(self) -> str | None:
        """The PTX, or AMD's assembly text."""
        text = self.artifacts.get("ptx", self.artifacts.get("amdgcn"))
        return text if isinstance(text, str) else None

    @property
    def cubin(self) -> bytes | None:
        """The machine code file, a cubin or AMD's hsaco."""
        code = self.artifacts.get("cubin", self.artifacts.get("hsaco"))
        return code if isinstance(code, bytes) else None


def assemble(source: str, device: Device) -> list[Assembled]:
    """Every configuration of the kernel in `source`, the text that Inductor hands to Triton.  About 0.13 s each.

    Starts the simulation of `device` when this process has none.  Raises AssembleError with a sentence when the text
    holds no kernel or no configuration of it can be compiled, SimulationUnavailableError as `simulate` does.
    """
    simulation = simulate(device)
    with simulation.off():
        tuner = _tuner(source)
        found = [_assembled(result, resources, device) for result, resources in _results(tuner)]
    if not found:
        raise AssembleError("None of the kernel's configurations could be compiled for this device.")
    return found


def disassemble(machine_code: bytes) -> str | None:
    """The SASS text of a cubin, or None where Triton ships no disassembler for it."""
    return _tool("nvdisasm", machine_code, "-c")


def _tuner(source: str) -> Any:
    from torch._inductor.codecache import PyCodeCache
    from torch._inductor.runtime.triton_heuristics import CachingAutotuner

    try:
        module = PyCodeCache.load(source)
    except Exception as error:
        raise AssembleError(f"The kernel's source cannot be loaded: {type(error).__name__}: {error}.") from error
    tuner = next((value for value in vars(module).values() if isinstance(value, CachingAutotuner)), None)
    if tuner is None:
        raise AssembleError("The text holds no kernel that Inductor made for Triton.")
    return tuner


def _results(tuner: Any) -> Iterator[tuple[Any, dict[str, int]]]:
    """Triton's results with what each needs, those of smaller blocks that Inductor adds once it knows the registers."""
    from torch._inductor.runtime.triton_heuristics import OutOfResources, PTXASError

    last: Exception | None = None
    tuner.compile_results = []
    with no_static_launcher():
        for config in tuner.configs:
            try:
                tuner.compile_results.append(tuner._precompile_config(config))
            except (OutOfResources, PTXASError) as error:
                last = error
            except Exception as error:
                raise AssembleError(f"Triton cannot compile this kernel: {type(error).__name__}: {error}.") from error
        if not tuner.compile_results and last is not None:
            raise AssembleError(f"No configuration of this kernel fits the device: {last}.") from last
        needs = [_resources(result.kernel.asm) for result in tuner.compile_results]
        for result, resources in zip(tuner.compile_results, needs, strict=True):
            result.kernel.n_regs = resources.get("registers")
        tuner._make_launchers = lambda: None  # would load the code onto a card
        tuner._dynamic_scale_rblock()
    needs += [_resources(result.kernel.asm) for result in tuner.compile_results[len(needs) :]]
    yield from zip(tuner.compile_results, needs, strict=True)


def _assembled(result: Any, resources: Mapping[str, int], device: Device) -> Assembled:
    kernel, config = result.kernel, result.config
    registers, spills, shared = resources.get("registers"), resources.get("spills"), int(kernel.metadata.shared)
    fits = occupancy(device.limits, int(kernel.metadata.num_warps), registers, shared) if registers else None
    return Assembled(
        config=dict(config.kwargs),
        num_warps=config.num_warps,
        num_stages=config.num_stages,
        registers=registers,
        spills=spills,
        shared_bytes=shared,
        occupancy=fits,
        artifacts=dict(kernel.asm),
        rejected=_rejected(device, spills or 0, shared),
    )


def _rejected(device: Device, spills: int, shared: int) -> str | None:
    most = device.limits.shared_per_block
    if shared > most:
        return f"needs {shared} bytes of shared memory, and a block has at most {most}"
    if spills > _SPILLS_TOLERATED[device.is_amd]:
        return f"spills {spills} registers, and the autotuner skips such configurations"
    return None


def _resources(asm: Mapping[str, Any]) -> dict[str, int]:
    """`registers` and `spills` a thread, from the machine code; empty where it cannot be read."""
    if "cubin" in asm:
        text = _tool("cuobjdump", asm["cubin"], "-res-usage") or ""
        usage = re.search(r"REG:(\d+) STACK:(\d+)", text)
        # What the driver calls spills: the stack frame, in 32-bit words.
        return {"registers": int(usage[1]), "spills": int(usage[2]) // 4} if usage else {}
    text = asm.get("amdgcn", "")
    found = {name: re.search(rf"\.{name}:\s*(\d+)", text) for name in ("vgpr_count", "vgpr_spill_count")}
    vgprs, spills = found["vgpr_count"], found["vgpr_spill_count"]
    return {"registers": int(vgprs[1]), "spills": int(spills[1]) if spills else 0} if vgprs else {}


def _tool(name: str, machine_code: bytes, option: str) -> str | None:
    """Output of one of NVIDIA's tools that the Triton package ships, or None where it does not or the tool fails."""
    import triton

    program = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / name
    if not program.exists():
        return None
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(machine_code)
        file.flush()
        done = subprocess.run([str(program), option, file.name], capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else None
