"""Runs every program of a file in one process of its own, on a simulated GPU or on the CPU, and writes what came out.

usage: child.py PROGRAMS.py cpu|sim:NAME OUT.json

A program is a function `program_NAME(device)` that returns something JSON can hold; `device` is "cuda" or "cpu".
"""

import importlib.util
import json
import sys
import traceback
from pathlib import Path
from typing import Any

import torch

from inductoscope.protocol.codec import to_json


def load(file: str) -> Any:
    spec = importlib.util.spec_from_file_location("programs", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["programs"] = module
    spec.loader.exec_module(module)
    return module


def lowering(file: str, device: str) -> Any:
    from inductoscope.compiler.lower import Depth, Lowering
    from inductoscope.compiler.usercode import UserCode

    return Lowering(UserCode(also=(file,)), device, Depth.KERNELS)


def main(file: str, device: str, out: str) -> None:
    torch.set_num_threads(1)  # tensors are tiny, and threads on a busy machine wait for each other
    simulation = None
    if device != "cpu":
        from inductoscope.compiler import simgpu
        from inductoscope.protocol import devices

        choice = devices.parse(device)
        assert choice.device is not None
        simulation = simgpu.simulate(choice.device, is_user=lambda path: path == file)
    results: dict[str, Any] = {"self-test": {}}
    if simulation is not None:
        results["self-test"] = {"notes": [note.text for note in simulation.notes()]}
    module = load(file)
    for name, program in list(vars(module).items()):
        if not name.startswith("program_"):
            continue
        torch.manual_seed(0)
        record: dict[str, Any] = {}
        try:
            with lowering(file, device) as lower:
                record["result"] = program("cpu" if simulation is None else "cuda")
            record["kernels"] = [(kernel.name, kernel.language.value) for kernel in lower.facts().kernels]
            record["problems"] = lower.facts().problems
        except Exception:  # the test shows it
            record["error"] = traceback.format_exc()
        if simulation is not None:
            record["syncs"] = [(s.what, s.line, s.value, s.count, s.reason) for s in simulation.syncs()]
            record["notes"] = [
                (note.topic.value, note.text, note.place and note.place.line) for note in simulation.notes()
            ]
            record["launches"] = [(k.name, k.grid, k.configs, k.count) for k in simulation.launches()]
            record["decisions"] = [to_json(decision) for decision in simulation.decisions()]
            torch._dynamo.reset()
            simulation.clear()
        results[name.removeprefix("program_")] = record
    Path(out).write_text(json.dumps(results))


if __name__ == "__main__":
    main(*sys.argv[1:])
