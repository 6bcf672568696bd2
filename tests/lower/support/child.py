"""Runs models on a simulated GPU in a process of its own, and prints what lowering found.

usage: child.py sim:NAME MODEL...   prints a JSON object: model name -> facts, in the report's form
"""

import contextlib
import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch

from inductoscope.compiler import simgpu
from inductoscope.compiler.compat import inductor as compat
from inductoscope.compiler.lower.record_mode import Choices, record_mode, settings
from inductoscope.protocol import codec, devices
from lower.support.driver import load, lower, run


@contextlib.contextmanager
def only_recording(simulation: Any, texts: list[str]) -> Iterator[None]:
    """Inductor in record mode with nothing watching: what it writes when it is left alone."""
    from torch._inductor.graph import GraphLowering

    def entry(backend: Any, model: Any, inputs: Any, **_: Any) -> Any:
        runner = simulation.eager(model)
        with record_mode(Choices()), simulation.compiling():
            compat.compile_fx(model, list(inputs), settings(backend.config), None)
        return runner

    GraphLowering.save_output_code = staticmethod(texts.append)
    with compat.replaced(compat.ENTRY, lambda _: entry):
        yield
    GraphLowering.save_output_code = None


def main(device: str, *models: str) -> None:
    choice = devices.parse(device)
    assert choice.device is not None
    simulation = simgpu.simulate(choice.device)
    found: dict[str, Any] = {}
    for name in models:
        module = load(name)
        facts = lower(lambda module=module: run(module, simulation.move), device=device)
        unwatched: list[str] = []
        torch._dynamo.reset()
        with only_recording(simulation, unwatched):
            run(module, simulation.move)
        found[name] = {"facts": codec.to_json(replace(facts, cache_keys=())), "unwatched": unwatched}
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
