"""Runs case files under `Capture`, each in a forked process of its own, and writes what was found.

usage: python case_run.py OUT_FOLDER FILE...      writes OUT_FOLDER/<stem of FILE>.json

The conventions are those of tests/cases/README.md.  Inductor is replaced by running the graph, for capture ends where
the backend begins.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import os
import sys
import traceback
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
        child = os.fork()
        if child == 0:
            status = 1
            try:
                (out / f"{file.stem}.json").write_text(json.dumps(observe(file)))
                status = 0
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(status)
        os.waitpid(child, 0)


def observe(file: Path) -> dict[str, Any]:
    """What capture says of one case file."""
    sys.path.insert(0, str(file.parent))
    torch.manual_seed(0)
    module = importlib.import_module(file.stem)
    torch.manual_seed(0)
    streamed: list[Finding] = []
    # A file that names its backend says what the whole program does; elsewhere the calls are only a sample.
    program = Program.WHOLE if hasattr(module, "BACKEND") else Program.SAMPLE
    capture = Capture(UserCode(), make_target(module, file), streamed.append, program)
    raised = None
    with capture:
        try:
            run(module, capture)
        except Exception as error:  # the case may be about an error
            raised = type(error).__name__
            capture.compile_error(error)
    facts = capture.facts()
    found = {field.name: codec.to_json(getattr(facts, field.name)) for field in dataclasses.fields(facts)}
    return {"raised": raised, "facts": found, "streamed": codec.to_json(streamed)}


def make_target(module: ModuleType, file: Path) -> Target:
    """The target that the conventions name, at the line of its `def`."""
    entry = getattr(module, "ENTRY", None)
    if entry is None:
        line = module.Model.forward.__code__.co_firstlineno
        return Target(str(file), "Model.forward", line, TargetKind.MODULE_CLASS, "Model")
    code = getattr(getattr(module, entry), "__code__", None)
    kind = TargetKind.FUNCTION if code else TargetKind.OBJECT
    return Target(str(file), entry, code.co_firstlineno if code else 1, kind, entry)


def run(module: ModuleType, capture: Capture) -> None:
    """Make the calls of a case."""
    for name, value in getattr(module, "DYNAMO_CONFIG", {}).items():
        setattr(torch._dynamo.config, name, value)
    entry = getattr(module, "ENTRY", None)
    subject: Any = getattr(module, entry) if entry else module.Model(*getattr(module, "get_init_inputs", list)())
    compiled = torch.compile(subject, backend=getattr(module, "BACKEND", "eager"), **_options(module))
    if hasattr(module, "exercise"):
        capture.begin_call(0)
        module.exercise(compiled)
        return
    sets = module.get_input_sets() if hasattr(module, "get_input_sets") else [module.get_inputs()]
    for index, args in enumerate(sets):
        capture.begin_call(index)
        compiled(*args)


def _options(module: ModuleType) -> dict[str, Any]:
    return dict(getattr(module, "COMPILE_KWARGS", {}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), [Path(name).resolve() for name in sys.argv[2:]])
