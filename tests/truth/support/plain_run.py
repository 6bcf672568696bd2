"""Runs model files the way their author would, without Inductoscope, and writes what torch counted.

usage: python plain_run.py FOLDER JOBS       JOBS is a JSON file: name -> [file, entry, backend, sizes]

`entry` is the name of what to compile, `backend` is for files that name none; `sizes`, where not null, are those of
float32 arguments of each call.

The conventions are those of tests/cases/README.md.  FOLDER/NAME/answer.json has torch's counters and the exception that
ended the program; torch's structured trace and its log lie beside it.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import torch
from forked import run_each

COUNTERS = ("frames", "stats", "graph_break", "unimplemented", "aot_autograd", "inductor")


def run_file(job: tuple[str, str, str, Any]) -> dict[str, Any]:
    """Run one file and say what torch counted."""
    file, entry, backend, sizes = job
    raised = call(load(Path(file)), entry, backend, sizes)
    counters = torch._dynamo.utils.counters
    return {"raised": raised, "counters": {name: dict(counters[name]) for name in COUNTERS}}


def load(file: Path) -> ModuleType:
    """Import a file that lies in a folder of its own."""
    sys.path.insert(0, str(file.parent))
    torch.manual_seed(0)
    module = importlib.import_module(file.stem)
    torch.manual_seed(0)
    return module


def call(module: ModuleType, entry: str, backend: str, sizes: Any) -> str | None:
    """Make the calls of a module; the name of the exception where it ended with one."""
    for name, value in getattr(module, "DYNAMO_CONFIG", {}).items():
        setattr(torch._dynamo.config, name, value)
    program = compiled(module, entry, backend)
    try:
        if sizes is None and hasattr(module, "exercise"):
            module.exercise(program)
        else:
            for given in calls(module, sizes):
                program(*given)
    except Exception as error:  # the file may be about an error
        return type(error).__name__
    return None


def calls(module: ModuleType, sizes: Any) -> Any:
    """The arguments of each call."""
    if sizes is not None:
        return [[torch.randn(size) for size in call] for call in sizes]
    return module.get_input_sets() if hasattr(module, "get_input_sets") else [module.get_inputs()]


def compiled(module: ModuleType, entry: str, backend: str) -> Any:
    """The program of a module under `torch.compile`, which a module may have applied already."""
    subject: Any = getattr(module, entry)
    if isinstance(subject, type):
        subject = subject(*getattr(module, "get_init_inputs", list)())
    if isinstance(subject, torch._dynamo.OptimizedModule) or hasattr(subject, "_torchdynamo_orig_callable"):
        return subject
    options = {"backend": getattr(module, "BACKEND", backend), **getattr(module, "COMPILE_KWARGS", {})}
    return torch.compile(subject, **options)


def main(folder: Path, jobs: Path) -> None:
    assert "inductoscope" not in sys.modules
    run_each(folder, json.loads(jobs.read_text()).items(), run_file)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
