"""What the benchmark needs of torch's private parts.

Dynamo's counters and metrics (`torch._dynamo.utils`): there is no public account of compiled graphs, and a speed-up
without one may compare eager with eager.  A compile cache of one's own (`torch._inductor.utils.fresh_cache`): without
it the compile time would depend on what earlier runs left on disk.  The missing C++ compiler (`InvalidCxxCompiler`):
told apart from other failures only by its type.  Checked on torch 2.11 and 2.13.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Counts:
    """What Dynamo counted: frames it tried to compile, graphs it handed on, graph breaks."""

    frames: int
    graphs: int
    breaks: int

    def since(self, earlier: Counts) -> Counts:
        """What was counted after `earlier`."""
        return Counts(self.frames - earlier.frames, self.graphs - earlier.graphs, self.breaks - earlier.breaks)


def counts() -> Counts:
    """Dynamo's counts of this process so far."""
    from torch._dynamo.utils import counters

    return Counts(
        frames=counters["frames"]["total"],
        graphs=counters["stats"]["unique_graphs"],
        breaks=sum(counters["graph_break"].values()),
    )


def compile_ids_with_graphs() -> frozenset[str]:
    """Compile ids (`0/0`) of the frames that got a graph with operators in it, since `cold_compiler` was entered.

    Dynamo rewrites frames without any graph too.  It keeps the last 64 compilations only.
    """
    from torch._dynamo.utils import get_compilation_metrics

    return frozenset(item.compile_id for item in get_compilation_metrics() if item.compile_id and item.graph_op_count)


@contextlib.contextmanager
def cold_compiler() -> Iterator[None]:
    """Compile from nothing inside: no code that was compiled before, on disk or in memory, is used."""
    from torch._dynamo.utils import clear_compilation_metrics
    from torch._inductor.utils import fresh_cache

    torch.compiler.reset()
    clear_compilation_metrics()
    with fresh_cache():
        yield
    torch.compiler.reset()


def lacks_cxx_compiler(error: BaseException) -> bool:
    """Whether this exception, or one that it was raised from, says that there is no C++ compiler."""
    from torch._inductor.exc import InvalidCxxCompiler

    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        if isinstance(current, InvalidCxxCompiler):
            return True
        current = current.__cause__ or current.__context__ or getattr(current, "inner_exception", None)
    return False
