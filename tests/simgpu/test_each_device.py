"""Every GPU of the table: a program is lowered for it, and one of its kernels becomes its machine code."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from functools import cache
from typing import Any

import pytest

from inductoscope.protocol import devices
from inductoscope.protocol.devices import Device, Vendor

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

ONE_BY_ONE = """
import json, os, sys, torch
from inductoscope.compiler import simgpu
from inductoscope.compiler.lower import Depth, Lowering
from inductoscope.compiler.predict import predict
from inductoscope.compiler.usercode import UserCode
from inductoscope.protocol import devices

torch.set_num_threads(1)
keys = sys.argv[1:]
simulation = simgpu.simulate(devices.find(keys[0]))

def program(x, weight):
    return torch.softmax(x @ weight, -1)

def account(device):
    with Lowering(UserCode(also=()), device.text, Depth.KERNELS) as lowering:
        x, weight = (torch.randn(64, 64, device="cuda", dtype=torch.float16) for _ in range(2))
        x.requires_grad_()
        torch.compile(program)(x, weight).sum().backward()
        assert x.grad.shape == (64, 64)
    facts = lowering.facts()
    assert facts.problems == (), facts.problems
    kernel = next(kernel for kernel in facts.kernels if kernel.language.value == "triton")
    assembled = simgpu.assemble(kernel.source, device)[0]
    return {
        "notes": [note.text for note in simulation.notes()],
        "kernels": [kernel.name for kernel in facts.kernels],
        "problem": assembled.problem,
        "code": assembled.ptx,
        "registers": assembled.registers,
        "occupancy": assembled.occupancy and assembled.occupancy.fraction,
        "us": predict(kernel, device).us,
    }

for key in keys:
    sys.stdout.flush()
    if (child := os.fork()) == 0:
        device = devices.find(key)
        if device != simulation.device:
            simulation.retarget(device)
        print(json.dumps({key: account(device)}), flush=True)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0, key
"""


@cache
def accounts(vendor: Vendor) -> dict[str, Any]:
    """By device, what became of the program there; one process simulates all of a vendor's."""
    keys = [device.key for device in devices.DEVICES if device.vendor is vendor]
    command = [sys.executable, "-c", textwrap.dedent(ONE_BY_ONE), *keys]
    done = subprocess.run(command, capture_output=True, text=True, timeout=380, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return {key: told for line in done.stdout.splitlines() for key, told in json.loads(line).items()}


@pytest.mark.parametrize("device", devices.DEVICES, ids=lambda device: device.key)
def test_a_program_is_lowered_and_a_kernel_assembled(device: Device) -> None:
    pytest.importorskip("triton")
    told = accounts(device.vendor)[device.key]
    assert told["notes"] == []  # the self-test found nothing off
    assert any(name.startswith("triton_") for name in told["kernels"])
    assert any(name.startswith("extern_kernels.mm") for name in told["kernels"])
    assert told["problem"] is None
    assert (f".target {device.arch}" if device.vendor is Vendor.NVIDIA else device.arch) in told["code"]
    assert told["registers"] > 0
    assert 0 < told["occupancy"] <= 1
    assert told["us"] > 0
