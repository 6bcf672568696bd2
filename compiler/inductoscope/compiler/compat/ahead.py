"""Imports of the compiler's own modules ahead of their first use.

`torch._dynamo` and `torch._inductor.compile_fx` have no public names; a first compilation imports them, which takes
seconds, and during it another hundred modules, which takes the better part of one.  The names are those of torch 2.11
to 2.15; one that is missing is left to the compilation that wants it.
"""

from __future__ import annotations

import contextlib
import importlib
import pkgutil
from collections.abc import Iterator

_MODULES = ("torch._dynamo", "torch._inductor.compile_fx")
_USED_LATER = (
    "sympy.physics.units",
    "sympy.tensor.tensor",
    "torch._dynamo.backends.inductor",
    "torch._dynamo.repro.after_dynamo",
    "torch._export.db.logging",
    "torch._functorch._aot_autograd.subclass_codegen",
    "torch._inductor.bounds",
    "torch._inductor.choices",
    "torch._inductor.codegen.cpp_wrapper_cpu_array_ref",
    "torch._inductor.codegen.cpp_wrapper_gpu",
    "torch._inductor.codegen.cuda_combined_scheduling",
    "torch._inductor.codegen.halide",
    "torch._inductor.codegen.memory_planning",
    "torch._inductor.codegen.mps",
    "torch._inductor.codegen.wrapper_fxir",
    "torch._inductor.fx_passes.freezing_patterns",
    "torch._inductor.fx_passes.fuse_attention",
    "torch._inductor.fx_passes.joint_graph",
    "torch._inductor.fx_passes.mkldnn_fusion",
    "torch._inductor.fx_passes.pad_mm",
    "torch._inductor.fx_passes.post_grad",
    "torch._inductor.tiling_utils",
    "torch.distributed.tensor.experimental",
    "torch.export._trace",
)
_PATTERNS = "torch._inductor.fx_passes.serialized_patterns"


def import_compiler() -> None:
    """Import Dynamo and Inductor.  Raises `ImportError` where this torch lacks them."""
    for name in _MODULES:
        importlib.import_module(name)


def imports_used_later() -> Iterator[str]:
    """Import what a first compilation would, as far as it is there; yields after each module, so that one can stop."""
    for name in _USED_LATER:
        _try(name)
        yield name
    patterns = _try(_PATTERNS)
    for found in pkgutil.iter_modules(getattr(patterns, "__path__", ())):
        _try(f"{_PATTERNS}.{found.name}")
        yield found.name


def _try(name: str) -> object:
    with contextlib.suppress(ImportError):
        return importlib.import_module(name)
    return None
