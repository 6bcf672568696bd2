"""Runs targets one after the other, each in a process of its own, with a store of lowered graphs or without.

usage: python reuse_runs.py FOLDER JOBS      JOBS is a JSON file: name -> [file, device, store or null]
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from inductoscope.compiler import pipeline
from inductoscope.protocol import codec
from inductoscope.protocol.messages import Reuse, Run, RunDone
from inductoscope.protocol.report import Rung
from inductoscope.server.targets import scan
from truth.support.forked import run_each


def run_target(job: list[Any]) -> Any:
    """The report of one target, as JSON."""
    file, device, store = job
    (found,) = scan(Path(file).read_text(), file).targets
    sent: list[Any] = []
    pipeline.run(Run(1, found.target, device, Rung.LOWER, reuse=Reuse(store)), sent.append)
    assert isinstance(sent[-1], RunDone), sent[-1]
    return codec.to_json(sent[-1].report)


if __name__ == "__main__":
    run_each(Path(sys.argv[1]), json.loads(Path(sys.argv[2]).read_text()).items(), run_target)
