"""Child process of `test_assemble`: assembles a few kernels for a device, and asks Triton and ptxas about the same.

`assembling.py DEVICE [--without-ptxas]` prints what it finds as JSON on its last line.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from typing import Any

import torch

from inductoscope.compiler import simgpu
from inductoscope.compiler.lower import Depth, Lowering
from inductoscope.compiler.simgpu.assemble import Assembled
from inductoscope.compiler.usercode import UserCode
from inductoscope.protocol import devices
from inductoscope.protocol.devices import Device

NO_KERNELS = ("x = 1", "import nothing_of_that_name", "def broken(")


def program(x: torch.Tensor) -> torch.Tensor:
    """A softmax over long rows and a column sum: reductions with several configurations, and plain arithmetic."""
    return torch.softmax(x, -1) + x.sum(0) + torch.sin(x)


def kernels_of(device: Device) -> dict[str, str]:
    """Sources by name."""
    with Lowering(UserCode(), device.text, Depth.KERNELS) as lower:
        torch.compile(program)(torch.ones(64, 5000, device="cuda"))
    return {kernel.name: kernel.source for kernel in lower.facts().kernels if kernel.source}


def inductors_own(source: str) -> list[dict[str, Any]]:
    """The configurations that Inductor's own precompilation ends with."""
    from torch._inductor.codecache import PyCodeCache
    from torch._inductor.runtime.triton_heuristics import CachingAutotuner

    from inductoscope.compiler.simgpu.simulation import no_static_launcher

    module = PyCodeCache.load(source + "\n# again")
    tuner = next(value for value in vars(module).values() if isinstance(value, CachingAutotuner))
    tuner._make_launchers = lambda: None
    with no_static_launcher():
        tuner._precompile_worker()
        for result in tuner.compile_results:
            if "cubin" in result.kernel.asm:
                result.kernel.n_regs = ptxas(result.kernel.asm["ptx"])["registers"]
        tuner._dynamic_scale_rblock()
    return [
        {"config": dict(result.config.kwargs), "shared": result.kernel.metadata.shared}
        for result in tuner.compile_results
    ]


def ptxas(ptx: str) -> dict[str, int]:
    """What `ptxas -v` says of a text, run as Triton runs it."""
    from triton.backends.nvidia.compiler import get_ptxas

    found = re.search(r"\.target sm_(\d+)(a?)", ptx)
    assert found is not None
    with tempfile.NamedTemporaryFile("w", suffix=".ptx") as file:
        file.write(ptx)
        file.flush()
        flags = ["-lineinfo", "-v", "--regAllocOptLevel=2", f"--gpu-name=sm_{found[1]}{found[2]}"]
        command = [get_ptxas(int(found[1])).path, *flags, file.name, "-o", "/dev/null"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    registers = re.search(r"Used (\d+) registers", done.stderr)
    stack = re.search(r"(\d+) bytes stack frame", done.stderr)
    assert registers is not None
    return {"registers": int(registers[1]), "stack": int(stack[1]) if stack else 0}


def told(one: Assembled, has_ptxas: bool) -> dict[str, Any]:
    """A configuration as JSON, with what ptxas says of its PTX and Triton of its shared memory."""
    text = one.ptx or ""
    return {
        "own": {
            "config": dict(one.config),
            "registers": one.registers,
            "spills": one.spills,
            "shared": one.shared_bytes,
            "occupancy": one.occupancy.fraction if one.occupancy else None,
            "problem": one.problem,
        },
        "text": text[:4000],
        "stages": sorted(one.artifacts),
        "ptxas": ptxas(text) if "cubin" in one.artifacts and has_ptxas else None,
        "sass": bool(simgpu.disassemble(one.cubin)) if "cubin" in one.artifacts and one.cubin else False,
    }


def main(name: str, has_ptxas: bool) -> None:
    device = devices.find(name)
    simgpu.simulate(device)
    if not has_ptxas:
        from triton.backends.nvidia import compiler

        def missing(arch: int) -> Any:
            raise RuntimeError("Cannot find ptxas")

        compiler.get_ptxas = missing
    found = []
    for kernel, source in kernels_of(device).items():
        configs = [told(one, has_ptxas) for one in simgpu.assemble(source, device)]
        own = inductors_own(source) if has_ptxas and not device.is_amd else None
        found.append({"name": kernel, "configs": configs, "inductor": own})
    refusals = []
    for text in NO_KERNELS:
        try:
            simgpu.assemble(text, device)
        except simgpu.AssembleError as error:
            refusals.append(str(error))
    print(json.dumps({"kernels": found, "refusals": refusals}))


if __name__ == "__main__":
    main(sys.argv[1], "--without-ptxas" not in sys.argv)
