"""Runs one program the way its group asks for; the same on a card and on a simulated one."""

from __future__ import annotations

import contextlib
import io
import sys
import traceback
import types
from collections.abc import Iterator
from pathlib import Path

import torch

import fidelity_programs
from fidelity_programs.kit import Prepared, Use

SEED = 0


def programs(folder: Path = Path(fidelity_programs.__file__).parent) -> Iterator[tuple[str, str, types.FunctionType]]:
    """Group, name and maker of every program."""
    for path in sorted(folder.glob("*.py")):
        if path.stem in ("__init__", "kit"):
            continue
        module = __import__(f"fidelity_programs.{path.stem}", fromlist=["*"])
        for name, found in list(vars(module).items()):  # compiling may add names
            own = isinstance(found, types.FunctionType) and found.__module__ == module.__name__
            if own and found.__annotations__.get("return") in (Prepared, "Prepared") and not name.startswith("_"):
                yield path.stem, f"{path.stem}.{name}", found


def kernelbench(folder: Path) -> Iterator[tuple[str, str, types.FunctionType]]:
    """The same for a folder of files with `Model`, `get_init_inputs` and `get_inputs`."""
    for path in sorted(folder.glob("**/*.py")):
        yield "kernelbench", f"{path.parent.name}.{path.stem}", _file_maker(path)


def _file_maker(path: Path) -> types.FunctionType:
    def make() -> Prepared:
        module = types.ModuleType(f"kernelbench_{path.stem}")
        module.__file__ = str(path)
        sys.modules[module.__name__] = module
        exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), vars(module))
        with torch.device("cuda"):
            model = module.Model(*module.get_init_inputs()).eval()
            inputs = module.get_inputs()
        args = tuple(one.cuda() if isinstance(one, torch.Tensor) else one for one in inputs)
        return Prepared(model, args, Use.INFERENCE)

    return make


def begin() -> None:
    """Nothing of an earlier program is left, and random numbers start anew."""
    torch._dynamo.reset()
    torch.manual_seed(SEED)


def run(prepared: Prepared) -> tuple[float, ...]:
    """Compile and call; gives the numbers that a whole program looked at."""
    # Some programs print on purpose, and Inductor names its files where kernels are to be timed.
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        if prepared.use is Use.WHOLE:
            return tuple(map(float, prepared.run(*prepared.args)))
        call = torch.compile(prepared.run, **prepared.options)
        once(prepared, call)
        return ()


def once(prepared: Prepared, call: object) -> None:
    """One call, and its backward where the program trains."""
    assert callable(call)
    trains = prepared.use is Use.TRAINING
    with torch.set_grad_enabled(trains):
        result = call(*prepared.args)
    if trains:
        (result if result.dim() == 0 else result.float().sum()).backward()


def in_one_line(error: BaseException) -> str:
    """What went wrong, in one line."""
    return "".join(traceback.format_exception_only(error)).strip().splitlines()[0][:300]
