"""What the processor of this machine reaches at best: a large copy, and a large product of float32 matrices.

Knows nothing of programs.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import torch

from inductoscope.protocol.bench import Ceilings

_COPY_BYTES, _MATRIX = 1 << 27, 1024
_TIMES = 5


def ceilings() -> Ceilings:
    """The best of a few attempts, with as many threads as torch is set to use."""
    source = torch.ones(_COPY_BYTES, dtype=torch.uint8)
    target = torch.empty_like(source)
    copied = 2 * _COPY_BYTES / _best_s(lambda: target.copy_(source)) / 1e9
    left = torch.randn(_MATRIX, _MATRIX)
    multiplied = 2 * _MATRIX**3 / _best_s(lambda: left @ left) / 1e12
    method = (
        f"copy of {_COPY_BYTES >> 20} MiB, read and written; float32 matmul of {_MATRIX} cubed; "
        f"best of {_TIMES}, wall time"
    )
    return Ceilings(copied, multiplied, method)


def _best_s(call: Callable[[], object]) -> float:
    times = []
    for _ in range(_TIMES):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)
