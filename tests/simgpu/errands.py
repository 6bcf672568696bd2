"""The errands of recording, run as a worker runs them, where the card is a simulated one.

usage: errands.py MODEL.py OUT.json
"""

import json
import sys
from pathlib import Path
from typing import Any

from inductoscope.compiler import pipeline, simgpu
from inductoscope.protocol import devices
from inductoscope.protocol.messages import Errand, Run, Target, TargetKind, to_wire
from inductoscope.protocol.report import Rung


def main(model: str, out: str) -> None:
    """Do both errands and write the last message of each."""
    target = Target(model, "Model", 1, TargetKind.MODULE_CLASS, "Model")
    told: dict[str, Any] = {}
    for simulated in (False, True):
        if simulated:
            simgpu.simulate(devices.find("A100"))
        for errand in (Errand.FIGURES, Errand.DECISIONS):
            messages: list[Any] = []
            pipeline.run(Run(1, target, "cuda", Rung.MEASURE, errand=errand), messages.append)
            told[f"{errand.value}, {'a card' if simulated else 'no card'}"] = to_wire(messages[-1])
    Path(out).write_text(json.dumps(told))


if __name__ == "__main__":
    main(*sys.argv[1:])
