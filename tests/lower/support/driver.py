"""Runs small programs under `Lowering`, in this process."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from inductoscope.compiler.lower import Depth, LowerFacts, Lowering
from inductoscope.compiler.lower.line_map import computing_lines
from inductoscope.compiler.usercode import UserCode

MODELS = Path(__file__).parents[1] / "models"


def lower(program: Callable[[], Any], depth: Depth = Depth.KERNELS, device: str = "cpu") -> LowerFacts:
    """The facts of one run of `program`, which compiles and calls what it likes."""
    torch._dynamo.reset()
    with Lowering(UserCode(), device, depth) as lowering:
        program()
    return lowering.facts()


def load(name: str) -> ModuleType:
    """A module of the folder `models`, fresh."""
    spec = importlib.util.spec_from_file_location(f"lower_models_{name}", MODELS / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    torch.manual_seed(0)
    spec.loader.exec_module(module)
    return module


def run(module: ModuleType, move: Callable[[Any], Any] = lambda value: value) -> Any:
    """Compile the module's `Model` and call it as the module says; the last result."""
    torch.manual_seed(0)
    model = module.Model(*(module.get_init_inputs() if hasattr(module, "get_init_inputs") else []))
    compiled = torch.compile(move(model), **getattr(module, "COMPILE_KWARGS", {}))
    if hasattr(module, "exercise"):
        return module.exercise(compiled)
    sets = module.get_input_sets() if hasattr(module, "get_input_sets") else [module.get_inputs()]
    return [compiled(*move(list(arguments))) for arguments in sets][-1]


def line_of(module: ModuleType, text: str) -> int:
    """The 1-based number of the only line of the module's file that contains `text`."""
    source = Path(str(module.__file__)).read_text()
    found = [at for at, line in enumerate(source.splitlines(), 1) if text in line]
    assert len(found) == 1, (text, found)
    return found[0]


def coverage(facts: LowerFacts) -> tuple[int, int]:
    """How many computing lines of generated kernels are mapped, and how many there are."""
    wanted = mapped = 0
    for kernel in facts.kernels:
        if kernel.source and not kernel.user_written:
            computing = set(computing_lines(kernel.source))
            wanted += len(computing)
            mapped += len(computing & {mapping.kernel_line for mapping in kernel.line_map})
    return mapped, wanted
