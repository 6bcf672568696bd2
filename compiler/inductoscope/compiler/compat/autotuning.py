"""What Inductor tries: the ways to compute an operator, and the configurations to launch a kernel with.

Private parts of torch, checked by running on 2.13 and by reading 2.11 and 2.12: `ChoiceCaller` and its subclasses
(`name`, `description`), the objects that launch Triton kernels (`configs`, `inductor_meta`), and grids by name.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping
from typing import Any

_SETTING = re.compile(r"\b(BLOCK_[MNK]|GROUP_M|SPLIT_K|num_stages|num_warps) ?= ?(\d+)")


def autotuner(source: str) -> Any:
    """The object that would try the candidates of a Triton kernel (`configs`, `inductor_meta`); None without Triton.

    Loading a kernel's module makes the candidates and compiles nothing.
    """
    try:
        module = importlib.import_module("torch._inductor.codecache").PyCodeCache.load(source)
    except Exception:  # it is generated code that may need anything
        return None
    found = (value for value in vars(module).values() if hasattr(value, "configs") and hasattr(value, "inductor_meta"))
    return next(found, None)


def grid_expression(inductor_meta: Mapping[str, Any], blocks: Mapping[str, int]) -> str | None:
    """The launch grid as a Python expression over sizes and those block sizes that `blocks` leaves open.

    The class that writes it is named in a kernel's own text (`grid_type`), 2.7 and later.
    """
    try:
        heuristics = importlib.import_module("torch._inductor.runtime.triton_heuristics")
        grid = getattr(heuristics, inductor_meta["grid_type"])(inductor_meta=dict(inductor_meta), mode="python")
        grid.generate({**{f"{axis}BLOCK": f"{axis}BLOCK" for axis in "XYZR"}, **blocks})
    except Exception:  # grids of templates and of unknown kinds need more than names
        return None
    return f"({grid.x_grid}, {grid.y_grid}, {grid.z_grid})"


def is_library_call(candidate: Any) -> bool:
    """Whether a candidate of autotuning is a library call, and no template."""
    return type(candidate).__name__ == "ExternKernelCaller"


def candidate_name(candidate: Any) -> str:
    """A candidate of autotuning as torch prints it: its name, and the settings that tell it from its siblings.

    The number at the end of a template's name counts all candidates of the process and is left out.
    """
    settings = _SETTING.findall(str(getattr(candidate, "description", "")))
    if not settings:
        return f"{candidate.name} (library call)" if is_library_call(candidate) else str(candidate.name)
    return f"{candidate.name.rstrip('0123456789').rstrip('_')} ({', '.join(f'{k}={v}' for k, v in settings)})"
