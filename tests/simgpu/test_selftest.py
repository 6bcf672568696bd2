"""What is off in a version of torch is named, lowers the claim, and crashes nothing."""

import subprocess
import sys
import textwrap

import pytest

pytestmark = pytest.mark.slow


def test_each_part_that_is_off_is_named_and_the_simulation_goes_on() -> None:
    text = """
    import time, torch
    from inductoscope.compiler import simgpu
    from inductoscope.compiler.simgpu import selftest
    from inductoscope.protocol import devices

    simulation = simgpu.simulate(devices.find("H200"))
    assert simulation.notes() == ()
    before = time.process_time()
    assert list(selftest.run(simulation.device, [])) == []
    assert time.process_time() - before < 0.5

    def refuse(*_):
        raise RuntimeError("no such thing\\nand more")

    torch.accelerator.current_accelerator = lambda *_, **__: torch.device("cpu")
    torch._C._select_conv_backend = lambda *_: torch._C._ConvBackend.Slow2d
    torch._fused_sdp_choice = refuse
    torch.Tensor.backward = lambda _: None
    for sentence in selftest.run(simulation.device, []):
        print(sentence)
    """
    text = textwrap.dedent(text)
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr
    sentences = done.stdout.splitlines()
    endings = (
        "the accelerator is cpu, expected cuda.",
        "a backward pass leaves no gradient on the device.",
        "the convolution backend is _ConvBackend.Slow2d, expected _ConvBackend.Cudnn.",
        "the attention backend failed with RuntimeError: no such thing.",
    )
    for sentence, ending in zip(sentences, endings, strict=True):
        assert sentence == f"The simulated H200 may differ from a real one: {ending}"
