"""Runs model files the way their author would, without Inductoscope, and writes what torch counted.

usage: python plain_run.py FOLDER BACKEND FILE...       BACKEND is for files that name none

The conventions are those of tests/cases/README.md.  FOLDER/NAME/answer.json has torch's counters and the exception that
ended the program; torch's structured trace and its log lie beside it.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import torch
from forked import run_each

COUNTERS = ("frames", "stats", "graph_break", "unimplemented", "aot_autograd", "inductor")


def run_file(job: tuple[Path, str]) -> dict[str, Any]:
    """Run one file; `job` is its path and the backend to compile with where it names none."""
    file, backend = job
    raised = call(load(file), backend)
    counters = torch._dynamo.utils.counters
    return {"raised": raised, "counters": {name: dict(counters[name]) for name in COUNTERS}}


def load(file: Path) -> ModuleType:
    """Import a file that lies in a folder of its own."""
    sys.path.insert(0, str(file.parent))
    torch.manual_seed(0)
    module = importlib.import_module(file.stem)
    torch.manual_seed(0)
    return module


def call(module: ModuleType, backend: str) -> str | None:
    """Make the calls of a module; the name of the exception where it ended with one."""
    for name, value in getattr(module, "DYNAMO_CONFIG", {}).items():
        setattr(torch._dynamo.config, name, value)
    program = compiled(module, backend)
    try:
        if hasattr(module, "exercise"):
            module.exercise(program)
            return None
        sets = module.get_input_sets() if hasattr(module, "get_input_sets") else [module.get_inputs()]
        for given in sets:
            program(*given)
    except Exception as error:  # the file may be about an error
        return type(error).__name__
    return None


def compiled(module: ModuleType, backend: str) -> Any:
    """The program of a module under `torch.compile`, which a module may have applied already."""
    entry = getattr(module, "ENTRY", None)
    subject: Any = getattr(module, entry) if entry else module.Model(*getattr(module, "get_init_inputs", list)())
    if isinstance(subject, torch._dynamo.OptimizedModule) or hasattr(subject, "_torchdynamo_orig_callable"):
        return subject
    options = {"backend": getattr(module, "BACKEND", backend), **getattr(module, "COMPILE_KWARGS", {})}
    return torch.compile(subject, **options)


def main(folder: Path, backend: str, files: list[Path]) -> None:
    assert "inductoscope" not in sys.modules
    run_each(folder, [(file.stem, (file, backend)) for file in files], run_file)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], [Path(name).resolve() for name in sys.argv[3:]])
