"""Runs programs one after the other, each in a process forked from one that has imported torch already.

Each process has an empty compile cache, a structured trace and a log of its own in `FOLDER/NAME`.  The built C++
libraries alone are shared, for building them takes most of the time and says nothing about the program.  This module
knows neither Inductoscope nor what a program is.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import threading
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch
import torch._dynamo
import torch._inductor.compile_fx
import torch._logging._internal

ANSWER = "answer.json"
TRACES = "trace"
LOG = "log.txt"
_GRAPH_CACHES = ("fxgraph", "aotautograd")


def run_each(folder: Path, jobs: Iterable[tuple[str, Any]], work: Callable[[Any], Any]) -> None:
    """Write `work(job)` as JSON to `folder/NAME/answer.json` for each named job; what fails is in its log."""
    assert threading.active_count() == 1, "a process with threads cannot be forked safely"
    sys.stdout.flush()
    for name, job in jobs:
        own = folder / name
        own.mkdir()
        child = os.fork()
        if child == 0:
            os._exit(_child(own, folder / "cache", lambda job=job: work(job)))
        os.waitpid(child, 0)


def _child(own: Path, cache: Path, work: Callable[[], Any]) -> int:
    log = os.open(own / LOG, os.O_WRONLY | os.O_CREAT)
    os.dup2(log, 1)
    os.dup2(log, 2)
    for name in _GRAPH_CACHES:
        shutil.rmtree(cache / name, ignore_errors=True)
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(cache)
    # The file of the trace is made at the first record, so that each process can have one of its own.
    torch._logging._internal.LOG_TRACE_HANDLER.root_dir = str(own / TRACES)
    try:
        (own / ANSWER).write_text(json.dumps(work()))
    except BaseException:
        traceback.print_exc()
        return 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return 0
