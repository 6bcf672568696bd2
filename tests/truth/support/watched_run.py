"""Runs targets as a worker of Inductoscope does, and writes its reports.

usage: python watched_run.py FOLDER TARGETS       TARGETS is a JSON file: name -> [target, device, rung]

torch's structured trace of the watched program lies beside the report, to be compared with that of the unwatched one.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import torch
from forked import run_each
from plain_run import COUNTERS

from inductoscope.compiler import pipeline
from inductoscope.protocol import codec
from inductoscope.protocol.messages import Run, RunDone, RunFailed, Target
from inductoscope.protocol.report import Rung


def run_target(job: list[Any]) -> dict[str, Any]:
    """Run one target; what the worker would send last."""
    target, device, rung = job
    sent: list[Any] = []
    pipeline.run(Run(1, codec.from_json(Target, target), device, Rung(rung)), sent.append)
    last = sent[-1]
    assert isinstance(last, RunDone | RunFailed)
    counters = torch._dynamo.utils.counters
    return {
        "report": codec.to_json(last.report),
        "failure": codec.to_json(getattr(last, "failure", None)),
        "counters": {name: dict(counters[name]) for name in COUNTERS},
    }


def main(folder: Path, targets: Path) -> None:
    run_each(folder, json.loads(targets.read_text()).items(), run_target)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
