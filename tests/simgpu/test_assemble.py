"""Machine code of kernels, without a GPU."""

import json
import subprocess
import sys
import textwrap
from typing import Any

import pytest

pytestmark = pytest.mark.slow

# Kernels of a softmax over long rows and a column sum: reductions with several configurations.
SCRIPT = """
import json, sys, torch
from inductoscope.compiler import simgpu
from inductoscope.compiler.lower import Depth, Lowering
from inductoscope.compiler.usercode import UserCode
from inductoscope.protocol import devices

device = devices.find(sys.argv[1])
simgpu.simulate(device)
with Lowering(UserCode(), device.text, Depth.KERNELS) as lower:
    torch.compile(lambda x: torch.softmax(x, -1) + x.sum(0))(torch.ones(64, 5000, device="cuda"))
found = {}
for kernel in lower.facts().kernels:
    found[kernel.name] = []
    for one in simgpu.assemble(kernel.source, device):
        fits = one.occupancy
        found[kernel.name].append(
            [one.registers, one.spills, one.shared_bytes, one.num_warps, fits and fits.fraction, one.ptx[:4000],
             len(one.cubin or b""), sorted(one.artifacts), one.rejected, bool(simgpu.disassemble(one.cubin))]
        )
refusals = []
for text in ("x = 1", "import nothing_of_that_name", "def broken("):
    try:
        simgpu.assemble(text, device)
    except simgpu.AssembleError as error:
        refusals.append(str(error))
print(json.dumps([found, refusals]))
"""


def assembled(device: str) -> tuple[dict[str, Any], list[str]]:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(SCRIPT), device],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found, refusals = json.loads(done.stdout.splitlines()[-1])
    return found, refusals


@pytest.mark.parametrize(
    ("device", "target", "stage"),
    [("H200", ".target sm_90", "cubin"), ("T4", ".target sm_75", "cubin"), ("MI300X", "gfx942", "hsaco")],
)
def test_every_kernel_becomes_machine_code_of_the_device(device: str, target: str, stage: str) -> None:
    found, refusals = assembled(device)
    assert len(found) >= 2
    for configs in found.values():
        assert configs
        for registers, spills, shared, warps, occupancy, text, size, stages, rejected, _ in configs:
            assert 8 <= registers <= 512
            assert spills >= 0 and shared >= 0 and warps >= 1
            assert 0 < occupancy <= 1
            assert target in text
            assert size > 500
            assert {"ttir", "ttgir", "llir", stage} <= set(stages)
            assert rejected is None
    if device == "H200":
        assert any(len(configs) > 1 for configs in found.values())  # a reduction has candidates
        assert all(config[-1] for configs in found.values() for config in configs)  # and SASS text
    assert len(refusals) == 3
    assert "no kernel" in refusals[0]
    assert "nothing_of_that_name" in refusals[1]
