"""Runs a program as a worker would, with a torch that says that it is another version.

usage: python unknown_version.py VERSION PROGRAM DEVICE     prints what the worker's hello and the report say, as JSON
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from compat import record


def main(version: str, program: Path, device: str) -> None:
    """Greet, and run the program if the greeting has no problem."""
    record.make_namespace()
    import torch

    from inductoscope.compiler import pipeline, worker
    from inductoscope.protocol import codec
    from inductoscope.protocol.messages import Run
    from inductoscope.protocol.report import Rung

    torch.__version__ = torch.torch_version.TorchVersion(version)
    hello = worker.greet()
    told = {"problem": hello.problem, "warning": hello.warning, "end": None}
    if hello.problem is None:
        said: list[object] = []
        pipeline.run(Run(1, record.target_of(program), device, Rung.LOWER), said.append)
        last = said[-1]
        told |= {"end": type(last).__name__, "report": codec.to_json(last.report)}
    print(json.dumps(told))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3])
