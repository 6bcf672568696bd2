"""Records decisions with the product's recorder in a process whose card is simulated and whose timings are made up.

usage: fake_card.py MODEL.py OUT.json

What stands for the card is as little as can be: where torch would time something, its own function is called with
invented times.  All that is recorded goes through the hooks that a real card would call.
"""

import importlib.util
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from inductoscope.compiler import simgpu
from inductoscope.compiler.card import figures
from inductoscope.compiler.card.decisions import Recorder
from inductoscope.compiler.compat import autotuning
from inductoscope.compiler.lower import Depth, Lowering, record_mode
from inductoscope.compiler.usercode import UserCode
from inductoscope.protocol import devices, own_devices
from inductoscope.protocol.own_devices import OwnDevice

PLAIN_MS, PADDED_MS = 0.5, 0.6


def pads_as_timed() -> None:
    """Torch's own verdict on two times, in place of the estimate."""
    from torch._inductor.fx_passes import pad_mm

    pad_mm.get_cached_should_pad = lambda key: pad_mm.is_padded_faster(key, PLAIN_MS, PADDED_MS)


def autotunes_as_timed() -> None:
    """Those who wait for autotuning hear of all candidates; the last template is the fastest."""
    from torch._inductor.select_algorithm import get_algorithm_selector_cache

    def select(name: str, usable: list[Any], input_nodes: Any, choices: Any) -> None:
        times = {candidate: float(index + 2) for index, candidate in enumerate(reversed(usable))}
        library = [candidate for candidate in usable if autotuning.is_library_call(candidate)]
        times.update(dict.fromkeys(library, 99.0))
        times[next(candidate for candidate in usable if candidate not in library)] = float("inf")
        for hear in get_algorithm_selector_cache().feedback_saver_fns:
            hear(times, name, input_nodes, usable, None, {})

    record_mode._recorded = select


class Launcher:
    """As much of torch's launcher as choosing one takes."""

    n_regs, n_spills, shared, cache_hash = 1, 0, 0, ""

    def __init__(self, config: Any) -> None:
        self.config = config


def launches_as_timed(source: str) -> None:
    """Torch's tuner chooses among the kernel's configurations, of which the last is the fastest."""
    tuner = autotuning.autotuner(source)
    tuner.launchers = [Launcher(config) for config in tuner.configs]
    tuner.save_cache_hook = None
    times = {id(launcher): 1.0 / (index + 1) for index, launcher in enumerate(tuner.launchers)}
    tuner.bench = lambda launcher, *args, **kwargs: times[id(launcher)]
    tuner.precompile_time_taken_ns = 0
    if len(tuner.launchers) > 1:
        tuner.autotune_to_one_config()


def main(model: str, out: str) -> None:
    """Record `model` on the made-up card."""
    simulation = simgpu.simulate(devices.find("H200"), is_user=lambda path: path == model)
    spec = importlib.util.spec_from_file_location("model", model)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    pads_as_timed()
    autotunes_as_timed()
    recorder = Recorder()
    inputs = simulation.move(module.get_inputs())
    with recorder.recording():
        with Lowering(UserCode(also=(model,)), "sim:H200", Depth.KERNELS) as lowering:
            torch.compile(module.Model(), **module.COMPILE_KWARGS)(*inputs)
        for kernel in lowering.facts().kernels:
            if kernel.source is not None:
                launches_as_timed(kernel.source)
    card = figures.read(bench=lambda call: 0.5)
    made = recorder.recorded()
    recording = replace(card.recording, paddings=made.paddings, choices=made.choices, kernels=made.kernels)
    own = OwnDevice(replace(card.device, key="box"), recording)
    Path(out).write_text(own_devices.to_text(own))


if __name__ == "__main__":
    main(*sys.argv[1:])
