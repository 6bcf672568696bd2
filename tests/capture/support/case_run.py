"""Runs one case file under `Capture` in this process and prints what it found, as JSON.

usage: python case_run.py FILE [DESCRIPTOR]

The conventions are those of tests/cases/README.md.  The backend `inductor` is replaced by `aot_eager`, for capture
ends where the backend begins.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from inductoscope.compiler.capture import Capture
from inductoscope.compiler.usercode import UserCode
from inductoscope.protocol import codec
from inductoscope.protocol.messages import Target, TargetKind
from inductoscope.protocol.report import Finding


def main(file: Path) -> None:
    sys.path.insert(0, str(file.parent))
    torch.manual_seed(0)
    module = importlib.import_module(file.stem)
    torch.manual_seed(0)
    target = make_target(module, file)
    streamed: list[Finding] = []
    capture = Capture(UserCode(), target, streamed.append)
    raised = None
    with capture:
        try:
            run(module, capture)
        except Exception as error:  # the case may be about an error
            raised = type(error).__name__
            capture.compile_error(error)
    report = {
        "raised": raised,
        "facts": {f.name: codec.to_json(getattr(capture.facts(), f.name)) for f in dataclasses.fields(capture.facts())},
        "streamed": codec.to_json(streamed),
    }
    os.write(int(sys.argv[2]) if len(sys.argv) > 2 else 1, json.dumps(report).encode())


def make_target(module: ModuleType, file: Path) -> Target:
    entry = getattr(module, "ENTRY", None)
    if entry is None:
        line = module.Model.forward.__code__.co_firstlineno
        return Target(str(file), "Model.forward", line, TargetKind.MODULE_CLASS, "Model")
    code = getattr(getattr(module, entry), "__code__", None)
    kind = TargetKind.FUNCTION if code else TargetKind.OBJECT
    return Target(str(file), entry, code.co_firstlineno if code else 1, kind, entry)


def run(module: ModuleType, capture: Capture) -> None:
    for name, value in getattr(module, "DYNAMO_CONFIG", {}).items():
        setattr(torch._dynamo.config, name, value)
    entry = getattr(module, "ENTRY", None)
    subject: Any = getattr(module, entry) if entry else module.Model(*getattr(module, "get_init_inputs", list)())
    backend = getattr(module, "BACKEND", "eager")
    options = {name: value for name, value in getattr(module, "COMPILE_KWARGS", {}).items() if name != "mode"}
    compiled = torch.compile(subject, backend=backend, **options)
    if hasattr(module, "exercise"):
        capture.begin_call(0)
        module.exercise(compiled)
        return
    sets = module.get_input_sets() if hasattr(module, "get_input_sets") else [module.get_inputs()]
    for index, args in enumerate(sets):
        capture.begin_call(index)
        compiled(*args)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
