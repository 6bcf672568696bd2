"""Runs programs through the real pipeline and uncompiled, each in a forked process, and writes what was found.

usage: python runs_child.py FILE...      writes FILE.json: the report and the uncompiled results, or what went wrong
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch._dynamo

from inductoscope.compiler import pipeline
from inductoscope.protocol import codec
from inductoscope.protocol.messages import Run, RunFailed
from inductoscope.protocol.report import Rung
from inductoscope.server.targets import scan


def main(files: list[Path]) -> None:
    torch.set_num_threads(1)  # a process with threads cannot be forked safely
    torch.compile(lambda x: x + 1, backend="aot_eager")(torch.ones(2))  # loads what each child would load
    torch._dynamo.reset()
    for file in files:
        child = os.fork()
        if child:
            os.waitpid(child, 0)
            continue
        try:
            Path(f"{file}.json").write_text(json.dumps(observe(file)))
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(0)


def observe(file: Path) -> dict[str, Any]:
    (target,) = scan(file.read_text(), str(file)).targets
    said: list[Any] = []
    pipeline.run(Run(1, target.target, "cpu", Rung.CAPTURE), said.append)
    last = said[-1]
    failed = last.failure.message if isinstance(last, RunFailed) else None
    return {"report": codec.to_json(last.report), "failed": failed, "results": uncompiled(file)}


def uncompiled(file: Path) -> list[Any]:
    """What each call gives without the compiler."""
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None and spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    torch.compiler.set_stance("force_eager")
    torch.manual_seed(0)
    spec.loader.exec_module(module)
    torch.manual_seed(0)
    program: Callable[..., Any] = getattr(module, module.ENTRY) if hasattr(module, "ENTRY") else module.Model()
    if hasattr(module, "exercise"):
        return plain(module.exercise(program))
    return [plain(program(*call)) for call in module.get_input_sets()]


def plain(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.detach().tolist()
    return [plain(item) for item in value] if isinstance(value, list | tuple) else value


if __name__ == "__main__":
    main([Path(name) for name in sys.argv[1:]])
