"""Does the simulation hold in this version of torch?  Asks the questions whose answers depend on private parts.

About 50 ms.  What is off comes back as sentences; an empty result means that everything was as expected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import torch

from inductoscope.compiler.simgpu import sdpa
from inductoscope.compiler.simgpu.patching import Patch
from inductoscope.protocol.devices import Device


def run(device: Device, missing: Iterable[Patch]) -> Iterator[str]:
    """Sentences about what is not as it should be.  The simulation of `device` must be on."""
    for patch in missing:
        yield (
            f"torch {torch.__version__} has no {patch.owner}.{patch.name} (there in {patch.checked}); "
            f"without that patch: {patch.why}."
        )
    checks: tuple[tuple[str, Callable[[Device], str | None]], ...] = (
        ("the accelerator", _accelerator),
        ("a backward pass", _backward),
        ("the convolution backend", _convolution),
        ("the attention backend", _attention),
    )
    for name, check in checks:
        try:
            problem = check(device)
        except Exception as error:  # any failure is a finding of the self-test, not of the user's program
            problem = f"failed with {type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"
        if problem is not None:
            yield f"The simulated {device.key} may differ from a real one: {name} {problem}."


def _accelerator(_: Device) -> str | None:
    found = torch.accelerator.current_accelerator()
    return None if found == torch.device("cuda") else f"is {found}, expected cuda"


def _backward(_: Device) -> str | None:
    with torch.enable_grad(), torch.inference_mode(False):
        x = torch.full((2, 2), 3.0, device="cuda", requires_grad=True)
        (x * x).sin().sum().backward()
    if x.grad is None or x.grad.device.type != "cuda":
        return "leaves no gradient on the device"
    expected = 6.0 * torch.tensor(9.0).cos()
    return None if torch.allclose(x.grad.cpu(), expected.expand(2, 2)) else "gives a wrong gradient"


def _convolution(device: Device) -> str | None:
    x, weight = (torch.empty(shape, device="cuda") for shape in ((1, 8, 8, 8), (8, 8, 3, 3)))
    ones, zeros = [1, 1], [0, 0]
    found = torch._C._select_conv_backend(x, weight, None, ones, zeros, ones, False, zeros, 1)
    expected = torch._C._ConvBackend.Miopen if device.is_amd else torch._C._ConvBackend.Cudnn
    return None if found == expected else f"is {found}, expected {expected}"


def _attention(device: Device) -> str | None:
    q = torch.empty(1, 2, 64, 64, dtype=torch.float16, device="cuda")
    found = torch._fused_sdp_choice(q, q, q)
    expected = sdpa.choose(device, sdpa.Call(q, q, q, None, 0.0, False, False))
    return None if found == expected else f"is number {found}, expected {expected.name}"
