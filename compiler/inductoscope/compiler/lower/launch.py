"""How a Triton kernel is launched: grid, warps, stages and the number of candidates.

Inductor makes the candidates when the kernel's module is loaded, and picks one by timing when it is first launched.
Loading builds nothing.
"""

from __future__ import annotations

import re

import torch

from inductoscope.compiler.card.replay import Replay
from inductoscope.compiler.compat import autotuning
from inductoscope.compiler.compat import inductor as compat
from inductoscope.compiler.compat.card import Configuration
from inductoscope.protocol.recording import TimedConfig
from inductoscope.protocol.report import Launch

# How Inductor writes a division that rounds up: Python's floor division of negative numbers.
_CEILING = re.compile(r"-\(\(([^()]+)\) // -\(([^()]+)\)\)")


def launch_of(source: str, nodes: tuple[torch.fx.Node, ...], replay: Replay) -> Launch | None:
    """Launch facts of a kernel; what depends on the candidate that wins is None unless there is only one, or `replay`
    tells which it was on the card.

    The grid of a hand-written kernel stands in the program and not in the kernel: a node among `nodes` tells it.
    """
    tuner = autotuning.autotuner(source)
    if tuner is None or not tuner.configs:
        return None
    recorded = replay.kernel(source)
    only: Configuration | TimedConfig | None = recorded.winner if recorded is not None else None
    if only is None and len(tuner.configs) == 1:
        only = Configuration.of(tuner.configs[0])
    own = next(filter(None, map(compat.hand_written_grid, nodes)), None)
    grid = own or autotuning.grid_expression(tuner.inductor_meta, only.blocks if only else {})
    return Launch(
        grid=_CEILING.sub(r"cdiv(\1, \2)", _with_sizes(grid, source)) if grid else None,
        num_warps=only.num_warps if only else None,
        num_stages=only.num_stages if only else None,
        configs=len(tuner.configs),
        searched=bool(tuner.inductor_meta.get("coordinate_descent_tuning")),
    )


def _with_sizes(grid: str, source: str) -> str:
    """The grid expression with those sizes that the kernel's text fixes (`xnumel = 32768`)."""
    for name, size in re.findall(r"^\s+(\w+numel) = (\d+)$", source, re.MULTILINE):
        grid = re.sub(rf"\b{name}\b", size, grid)
    return grid
