"""Machine code of an Inductor kernel for a device, for every configuration that Inductor would try, without a card.

Which configuration wins is measured on the card; Inductor's first choice comes first.  Registers and spills are read
from the machine code, so they are what the driver would report.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from inductoscope.compiler.occupancy import Occupancy, occupancy
from inductoscope.compiler.simgpu import machine_code, triton_stages
from inductoscope.compiler.simgpu.simulation import no_static_launcher, simulate
from inductoscope.compiler.simgpu.triton_stages import Remarked, Watch
from inductoscope.protocol.devices import Device

_SPILLS_TOLERATED = {False: 16, True: 32}  # by "is AMD": Inductor's autotuner skips configurations that spill more

_Compilation: TypeAlias = Callable[[], AbstractContextManager[Watch]]


class AssembleError(RuntimeError):
    """A kernel could not be assembled; the message is a sentence."""


@dataclass(frozen=True)
class Assembled:
    """One configuration of a kernel.

    `config` are the block sizes, `shared_bytes` is a block's, `registers` and `spills` (32-bit each) are a thread's;
    None where the compiler did not come that far or the machine code does not tell.  `max_registers` is the limit that
    the configuration sets a thread.  `rejected` says why Inductor's autotuner would not take this configuration,
    `problem` why it could not be compiled to the end.  `artifacts` maps Triton's stages (`ttir`, `ttgir`, `llir`, then
    `ptx` and `cubin`, or `amdgcn` and `hsaco`) to text or bytes, as far as the compiler came; `file` is the name that
    the kernel's source has in them.  `remarks` are Triton's own.
    """

    config: Mapping[str, int]
    num_warps: int
    num_stages: int
    registers: int | None
    spills: int | None
    shared_bytes: int | None
    occupancy: Occupancy | None
    artifacts: Mapping[str, str | bytes]
    rejected: str | None = None
    problem: str | None = None
    max_registers: int | None = None
    remarks: tuple[Remarked, ...] = ()
    file: str = ""

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

    Starts the simulation of `device` when this process has none, and owns standard error meanwhile.  Raises
    AssembleError with a sentence when the text holds no kernel or nothing of it can be compiled,
    SimulationUnavailableError as `simulate` does.
    """
    from triton.compiler.compiler import make_backend
    from triton.runtime.driver import driver

    simulation = simulate(device)
    with simulation.off(), no_static_launcher():
        tuner, file = _tuner(source)
        _prepare_for(device)
        backend = type(make_backend(driver.active.get_current_target()))
        with triton_stages.watched(backend) as compilation:
            found = [replace(one, file=file) for one in _configurations(tuner, device, compilation)]
    if not any(one.artifacts for one in found):
        raise AssembleError(found[0].problem if found and found[0].problem else "The kernel has no configuration.")
    return found


def _prepare_for(device: Device) -> None:
    if not device.is_amd and triton_stages.ptxas_problem(_arch(device)) is not None:
        triton_stages.go_on_without_ptxas()


def _arch(device: Device) -> int:
    major, minor = device.capability
    return major * 10 + minor


def _tuner(source: str) -> tuple[Any, str]:
    """Inductor's tuner of the kernel, and the path of the file that it is in."""
    from torch._inductor.codecache import PyCodeCache
    from torch._inductor.runtime.triton_heuristics import CachingAutotuner

    try:
        module = PyCodeCache.load(source)
    except Exception as error:
        raise AssembleError(f"The kernel's source cannot be loaded: {_said(error)}.") from error
    tuner = next((value for value in vars(module).values() if isinstance(value, CachingAutotuner)), None)
    if tuner is None:
        raise AssembleError("The text holds no kernel that Inductor made for Triton.")
    return tuner, str(module.__file__)


class _GaveUpError(Exception):
    """A configuration could not be compiled; what there is to say about it has been kept."""


def _configurations(tuner: Any, device: Device, compilation: _Compilation) -> list[Assembled]:
    """Those that Inductor starts from, then those of smaller blocks that it adds once it knows the registers."""
    found: list[Assembled] = []
    compile_one = tuner._precompile_config

    def compiled(config: Any) -> Any:
        with compilation() as watch:
            try:
                result, problem = compile_one(config), None
            except Exception as error:
                result, problem = None, _problem(error, watch, device)
        if result is None:
            found.append(_assembled(watch.artifacts, watch, config, device, problem))
            raise _GaveUpError
        watch.metadata = result.kernel.metadata._asdict()
        found.append(_assembled(result.kernel.asm, watch, config, device, None))
        result.kernel.n_regs = found[-1].registers
        return result

    tuner.compile_results = []
    for config in tuner.configs:
        with contextlib.suppress(_GaveUpError):
            tuner.compile_results.append(compiled(config))
    tuner._precompile_config = compiled
    tuner._make_launchers = lambda: None  # would load the code onto a card
    with contextlib.suppress(_GaveUpError):
        tuner._dynamic_scale_rblock()
    return found


def _assembled(
    asm: Mapping[str, str | bytes], watch: Watch, config: Any, device: Device, problem: str | None
) -> Assembled:
    needs = machine_code.usage(asm) if problem is None else None
    shared = watch.metadata.get("shared")
    warps = int(watch.metadata.get("num_warps") or config.num_warps)
    fits = None
    if needs is not None and shared is not None:
        fits = occupancy(device.limits, warps, needs.registers, shared)
    return Assembled(
        config=dict(config.kwargs),
        num_warps=config.num_warps,
        num_stages=config.num_stages,
        registers=needs.registers if needs else None,
        spills=needs.spills if needs else None,
        shared_bytes=shared,
        occupancy=fits,
        artifacts={name: made for name, made in asm.items() if name in (*triton_stages.TEXT_STAGES, "cubin", "hsaco")},
        rejected=_rejected(device, needs.spills if needs else 0, shared or 0),
        problem=problem,
        max_registers=watch.metadata.get("maxnreg"),
        remarks=watch.remarks,
    )


def _rejected(device: Device, spills: int, shared: int) -> str | None:
    most = device.limits.shared_per_block
    if shared > most:
        return f"needs {shared} bytes of shared memory, and a block has at most {most}"
    if spills > _SPILLS_TOLERATED[device.is_amd]:
        return f"spills {spills} registers, and the autotuner skips such configurations"
    return None


def _problem(error: Exception, watch: Watch, device: Device) -> str:
    """Why a configuration could not be compiled, as a sentence."""
    if watch.stage == "cubin":
        cannot_run = triton_stages.ptxas_problem(_arch(device))
        why = cannot_run or _ptxas_said(str(error)) or _said(error)
        return f"ptxas could not make machine code of this kernel: {why.rstrip('.')}."
    where = f" (at the stage {watch.stage})" if watch.stage else ""
    return f"Triton cannot compile this kernel{where}: {_said(error).rstrip('.')}."


def _ptxas_said(text: str) -> str | None:
    """The line of ptxas's own output that says what is wrong."""
    found = re.search(r"^ptxas\S* (?:.*?[:;] )?(?:error|fatal)\s*: (?P<what>.+)$", text, re.MULTILINE)
    return found["what"] if found else None


def _said(error: Exception) -> str:
    """The error in one line of a bearable length."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = lines[-1] if type(error).__name__ == "CompilationError" and lines else " ".join(lines)
    return f"{type(error).__name__}: {text[:300]}" if text else type(error).__name__
