"""Bytes and operations of a kernel, by Inductor's own account.

Inductor counts, for each buffer that a kernel touches, what the worst inputs and the best kernel would move: a buffer
read three times counts once.  Symbolic sizes are taken at the sizes of the run.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

import torch

from inductoscope.compiler.compat import costs, onednn, scheduling
from inductoscope.compiler.compat import inductor as compat
from inductoscope.compiler.lower.recording import Call

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Traffic:
    """Bytes read from and written to memory; None where Inductor does not tell."""

    read: int | None
    written: int | None


def traffic(call: Call) -> Traffic:
    """Bytes that one call moves, each buffer once; of a buffer that a library is given a view of, that view."""
    try:
        with compat.within_graph(call.graph):
            nodes = _fused(call)
            reads = _merged(node.get_read_write_buffer_accesses(True, False) for node in nodes)
            if call.extern:
                views = scheduling.views_read(call.nodes[0], call.graph)
                reads = {buffer: min(size, views.get(buffer, size)) for buffer, size in reads.items()}
            writes = _merged(node.get_read_write_buffer_accesses(False, True) for node in nodes)
    except Exception:  # accounting of exotic layouts must never cost the kernel itself
        _LOG.debug("no traffic for %s", call.name, exc_info=True)
        return Traffic(None, None)
    return Traffic(sum(reads.values()), sum(writes.values()))


def flops(call: Call, nodes: tuple[torch.fx.Node, ...]) -> int | None:
    """Floating-point operations of a library call or template, by torch's flop counter, which knows nothing of what
    oneDNN fuses; that is counted here.  None for anything else.

    A multiplication and an addition count as two.
    """
    if not call.extern and not any(leaf.is_template() for leaf in call.nodes):
        return None
    counted = [count for node in nodes if (count := costs.flops_of(node) or onednn.flops_of_product(node))]
    if counted:
        return sum(counted)
    return onednn.flops_of(call.nodes[0], nodes[0].meta.get("val")) if call.extern and nodes else None


def _fused(call: Call) -> list[Any]:
    """The scheduler's final nodes behind a call: a kernel of several fused operations counts as a whole.

    Of a combo that is written as several kernels, only the parts in this one.
    """
    found: dict[Any, None] = {}
    for leaf in call.nodes:
        whole = scheduling.final_node(leaf)
        parts = whole.snodes if whole.is_foreach() else [whole]
        found.update((part, None) for part in parts if leaf in part.get_nodes())
    return list(found)


def _merged(accesses: Any) -> dict[str, int]:
    total: dict[str, int] = {}
    for by_buffer in accesses:
        for buffer, size in by_buffer.items():
            total[buffer] = max(total.get(buffer, 0), int(size))
    return total
