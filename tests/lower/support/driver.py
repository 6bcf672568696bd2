"""Runs a small program under `Lowering`, in this process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from inductoscope.compiler.lower import Depth, LowerFacts, Lowering
from inductoscope.compiler.usercode import UserCode


def lower(program: Callable[[], Any], depth: Depth = Depth.KERNELS, device: str = "cpu") -> LowerFacts:
    """The facts of one run of `program`, which compiles and calls what it likes."""
    torch._dynamo.reset()
    with Lowering(UserCode(), device, depth) as lowering:
        program()
    return lowering.facts()


def line_of(file: str, text: str) -> int:
    """The 1-based number of the only line of `file` that contains `text`."""
    found = [at for at, line in enumerate(Path(file).read_text().splitlines(), 1) if text in line]
    assert len(found) == 1, (text, found)
    return found[0]
