"""The kernels of compiled code in this process, as objects that can be asked and watched.

Private parts of torch, the same in 2.11 to 2.15 (C++ kernels run on all of them, Triton's on a card with 2.11):
- `PyCodeCache.modules` (`torch._inductor.codecache`): the generated modules that were loaded; their globals hold the
  kernels, and the code that calls them looks them up there.
- `CachingAutotuner.launchers` with `n_regs`, `n_spills`, `shared` and `config`: what Triton made of a kernel.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch

_CPP = "cpp_"


@dataclass(frozen=True)
class Launched:
    """A Triton kernel as it is launched; figures are null where Triton did not tell."""

    name: str
    num_warps: int
    registers: int | None
    spills: int | None
    shared_bytes: int | None


def triton_kernels() -> dict[str, Launched]:
    """The Triton kernels that generated code of this process has settled on, by name."""
    tuners = (value for module in _modules() for value in vars(module).values() if hasattr(value, "launchers"))
    return {kernel.name: kernel for kernel in map(_launched, tuners) if kernel is not None}


@contextlib.contextmanager
def marked_cpp_kernels() -> Iterator[None]:
    """For the block, let each call of a generated C++ kernel show in the profiler under the kernel's name."""
    with contextlib.ExitStack() as undo:
        for module in _modules():
            for name, kernel in list(vars(module).items()):
                if name.startswith(_CPP) and callable(kernel):
                    setattr(module, name, _marked(name, kernel))
                    undo.callback(setattr, module, name, kernel)
        yield


def is_cpp_kernel(name: str) -> bool:
    """Whether Inductor would call a C++ kernel so."""
    return name.startswith(_CPP)


def _marked(name: str, kernel: Any) -> Any:
    def call(*args: Any) -> Any:
        with torch.profiler.record_function(name):
            return kernel(*args)

    return call


def _modules() -> tuple[ModuleType, ...]:
    return tuple(importlib.import_module("torch._inductor.codecache").PyCodeCache.modules)


def _launched(tuner: Any) -> Launched | None:
    try:
        (launcher,) = tuner.launchers
        name = tuner.fn.__name__
        warps = launcher.config.num_warps
    except (AttributeError, TypeError, ValueError):  # not launched yet, or no tuner at all
        return None
    figures = (getattr(launcher, figure, None) for figure in ("n_regs", "n_spills", "shared"))
    return Launched(name, warps, *(value if isinstance(value, int) else None for value in figures))
