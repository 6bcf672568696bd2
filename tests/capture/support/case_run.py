"""Runs case files under `Capture`, each in a forked process of its own, and writes what was found.

usage: python case_run.py OUT_FOLDER FILE...      writes OUT_FOLDER/<stem of FILE>.json and OUT_FOLDER/<stem>.bare.json

The second file is of a run without `Capture`, to see that watching changes nothing.

The conventions are those of tests/cases/README.md.  Inductor is replaced by running the graph, for capture ends where
the backend begins.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import logging
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
import torch._dynamo

from inductoscope.compiler.capture import Capture, Program
from inductoscope.compiler.usercode import UserCode
from inductoscope.protocol import codec
from inductoscope.protocol.messages import Target, TargetKind
from inductoscope.protocol.report import Finding


def main(out: Path, files: list[Path]) -> None:
    torch.set_num_threads(1)  # a process with threads cannot be forked safely
    torch._TorchCompileInductorWrapper.__call__ = lambda _self, module, _inputs: module.forward
    for file in files:
        for name, job in ((f"{file.stem}.json", observe), (f"{file.stem}.bare.json", leave_alone)):
            in_child(out / name, job, file)


def in_child(result: Path, job: Callable[[Path], dict[str, Any]], file: Path) -> None:
    """Do `job` in a process of its own."""
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return
    status = 1
    try:
        result.write_text(json.dumps(job(file)))
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def observe(file: Path) -> dict[str, Any]:
    """What capture says of one case file, and what torch's own trace and counters say."""
    module = load(file)
    streamed: list[Finding] = []
    # A file that names its backend says what the whole program does; elsewhere the calls are only a sample.
    program = Program.WHOLE if hasattr(module, "BACKEND") else Program.SAMPLE
    capture = Capture(UserCode(), make_target(module, file), streamed.append, program)
    told = Told()
    with told, capture:
        raised = run(module, capture.begin_call, capture.compile_error)
    facts = capture.facts()
    found = {field.name: codec.to_json(getattr(facts, field.name)) for field in dataclasses.fields(facts)}
    return {
        "raised": raised,
        "facts": found,
        "streamed": codec.to_json(streamed),
        "told": told.names,
        "counters": counters(),
    }


def leave_alone(file: Path) -> dict[str, Any]:
    """What torch's counters say when nobody watches."""
    raised = run(load(file), lambda index: None, lambda error: None)
    return {"raised": raised, "counters": counters()}


class Told(logging.Handler):
    """Counts the trace records that torch writes about breaks and recompilations."""

    NAMES = ("dynamo_graph_break_reason", "recompile_reasons")

    def __init__(self) -> None:
        super().__init__()
        self.names: dict[str, int] = dict.fromkeys(self.NAMES, 0)

    def __enter__(self) -> None:
        logging.getLogger("torch.__trace").addHandler(self)

    def __exit__(self, *_: object) -> None:
        logging.getLogger("torch.__trace").removeHandler(self)

    @torch.compiler.disable
    def emit(self, record: logging.LogRecord) -> None:
        name = getattr(record, "metadata", {}).get("artifact", {}).get("name")
        if name in self.names:
            self.names[name] += 1


def counters() -> dict[str, dict[str, int]]:
    """torch's own counts of frames, graphs and breaks."""
    kept = ("frames", "stats", "graph_break", "unimplemented")
    return {name: dict(torch._dynamo.utils.counters[name]) for name in kept}


def load(file: Path) -> ModuleType:
    """Import a case file the way that its conventions say."""
    sys.path.insert(0, str(file.parent))
    torch.manual_seed(0)
    module = importlib.import_module(file.stem)
    torch.manual_seed(0)
    return module


def make_target(module: ModuleType, file: Path) -> Target:
    """The target that the conventions name, at the line of its `def`."""
    entry = getattr(module, "ENTRY", None)
    if entry is None:
        line = module.Model.forward.__code__.co_firstlineno
        return Target(str(file), "Model.forward", line, TargetKind.MODULE_CLASS, "Model")
    code = getattr(getattr(module, entry), "__code__", None)
    kind = TargetKind.FUNCTION if code else TargetKind.OBJECT
    return Target(str(file), entry, code.co_firstlineno if code else 1, kind, entry)


def run(module: ModuleType, begin_call: Callable[[int], object], on_error: Callable[[Exception], object]) -> str | None:
    """Make the calls of a case; the name of the exception where it ended with one."""
    for name, value in getattr(module, "DYNAMO_CONFIG", {}).items():
        setattr(torch._dynamo.config, name, value)
    entry = getattr(module, "ENTRY", None)
    subject: Any = getattr(module, entry) if entry else module.Model(*getattr(module, "get_init_inputs", list)())
    options = getattr(module, "COMPILE_KWARGS", {})
    compiled = torch.compile(subject, backend=getattr(module, "BACKEND", "eager"), **options)
    try:
        if hasattr(module, "exercise"):
            module.exercise(compiled)
            return None
        sets = module.get_input_sets() if hasattr(module, "get_input_sets") else [module.get_inputs()]
        for index, args in enumerate(sets):
            begin_call(index)
            compiled(*args)
    except Exception as error:  # the case may be about an error
        on_error(error)
        return type(error).__name__
    return None


if __name__ == "__main__":
    main(Path(sys.argv[1]), [Path(name).resolve() for name in sys.argv[2:]])
