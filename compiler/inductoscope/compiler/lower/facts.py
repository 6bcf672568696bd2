"""What lowering found out, in the report's own types."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from inductoscope.compiler.lower.cache_keys import Known
from inductoscope.compiler.predict.whole import GraphCall
from inductoscope.protocol.report import (
    CacheFact,
    CudaGraphs,
    Decision,
    Finding,
    FusionGroup,
    FxGraph,
    GraphLowering,
    Kernel,
    Memory,
    PassFact,
    Recomputation,
    SavedTensor,
    Wrapper,
)


class Depth(enum.Enum):
    """How far a captured graph is taken: `GRAPHS` runs it op by op, `KERNELS` also generates its code."""

    GRAPHS = "graphs"
    KERNELS = "kernels"


class Backward(enum.Enum):
    """Whether backward passes are lowered with their forward passes, before the program asks for them."""

    ALWAYS = "always"
    UNLESS_LARGE = "unless-large"


@dataclass(frozen=True)
class LowerFacts:
    """Kernels and fusion groups stand in call order, one a call: `kernels[i]` is what `fusion_groups[i]` became.

    `cache_keys` are what the next run is compared with.  `problems` say, a sentence each, what could not be read of a
    graph; Inductor's own errors are among the findings.  `graph_calls` say what each graph would dispatch without
    compilation, and how often the first call of the target runs it; only for a simulated device.
    """

    fusion_groups: tuple[FusionGroup, ...] = ()
    kernels: tuple[Kernel, ...] = ()
    wrappers: tuple[Wrapper, ...] = ()
    memory: Memory = field(default_factory=Memory)
    cudagraphs: CudaGraphs = field(default_factory=CudaGraphs)
    fx_graphs: tuple[FxGraph, ...] = ()
    passes: tuple[PassFact, ...] = ()
    saved: tuple[SavedTensor, ...] = ()
    recomputed: tuple[Recomputation, ...] = ()
    lowerings: tuple[GraphLowering, ...] = ()
    caches: tuple[CacheFact, ...] = ()
    cache_keys: tuple[Known, ...] = ()
    findings: tuple[Finding, ...] = ()
    problems: tuple[str, ...] = ()
    graph_calls: tuple[GraphCall, ...] = ()
    decisions: tuple[Decision, ...] = ()
