"""Starts the processes that run programs, plain and watched.  Imports no torch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

SUPPORT = Path(__file__).parent


def start(script: str, folder: Path, jobs: Mapping[str, Any]) -> subprocess.Popen[bytes]:
    """Start a script of this folder on jobs by name; the log of the whole is `folder/log.txt`."""
    folder.mkdir(parents=True)
    (folder / "jobs.json").write_text(json.dumps(jobs))
    command = [sys.executable, SUPPORT / script, folder, folder / "jobs.json"]
    with (folder / "log.txt").open("w") as log:
        return subprocess.Popen(command, env=_environment(), stdout=log, stderr=log)


def _environment() -> dict[str, str]:
    """A trace for each process (see `forked`), torch's word on the frames it skips, and C++ that is built quickly."""
    return {
        **os.environ,
        "TORCH_TRACE": os.devnull,
        "TORCH_LOGS": "+torch._dynamo.convert_frame",
        "TORCHINDUCTOR_COMPILE_THREADS": "1",
        "TORCHINDUCTOR_DEBUG_COMPILE": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",  # guards on sets print them in their order
    }
