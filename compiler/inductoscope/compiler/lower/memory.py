"""Inductor's memory plan as numbers."""

from __future__ import annotations

from inductoscope.compiler.compat import costs
from inductoscope.compiler.lower.recording import Compilation
from inductoscope.protocol.report import Memory


def memory_of(noted: Compilation) -> Memory:
    """Buffers allocated, taken over from a dead one, and written over an input, in one graph.

    The peak is Inductor's estimate, in bytes, for the final order of kernels; inputs that outlive the graph count.
    """
    return Memory(
        peak_bytes=costs.peak_bytes(noted.graph),
        buffers=noted.allocated,
        reused=noted.reused,
        inplace=noted.inplace,
    )


def add(one: Memory, other: Memory) -> Memory:
    """Two graphs together: they run one after the other, so the higher peak counts."""
    return Memory(
        peak_bytes=max(filter(None, (one.peak_bytes, other.peak_bytes)), default=None),
        buffers=_sum(one.buffers, other.buffers),
        reused=_sum(one.reused, other.reused),
        inplace=_sum(one.inplace, other.inplace),
    )


def _sum(one: int | None, other: int | None) -> int | None:
    return None if one is None and other is None else (one or 0) + (other or 0)
