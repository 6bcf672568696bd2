"""What became of one captured graph, forward and backward together, as it grows while Inductor works."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from inductoscope.compiler.lower.backward import BackwardPasses
from inductoscope.compiler.lower.cudagraphs import Verdict
from inductoscope.compiler.lower.findings import finding
from inductoscope.compiler.lower.fx_graphs import GraphStages
from inductoscope.compiler.lower.library import Fallback
from inductoscope.compiler.lower.passes import PassWatch
from inductoscope.compiler.lower.signatures import Signatures
from inductoscope.compiler.predict.eager import EagerRun
from inductoscope.protocol.report import Decision, Finding, FusionGroup, Kernel, Memory, Place, Wrapper


@dataclass
class LoweredGraph:
    """Facts about the graph `id` (torch's compile id) of one `attempt`, which counts restarts of Dynamo's analysis.

    `first` is the index of its first fusion group among those of all graphs with this id.  `eager` is what its first
    run would dispatch without compilation, and `in_first_call` how often the first call of the target runs it.
    """

    id: str
    attempt: int
    first: int
    verdict: Verdict
    signatures: Signatures
    backward: BackwardPasses
    passes: PassWatch
    stages: GraphStages
    groups: list[FusionGroup] = field(default_factory=list)
    kernels: list[Kernel] = field(default_factory=list)
    wrappers: list[Wrapper] = field(default_factory=list)
    fallbacks: list[Fallback] = field(default_factory=list)
    user_kernels: list[tuple[str, Place]] = field(default_factory=list)
    memory: Memory = field(default_factory=Memory)
    in_first_call: int = 0
    eager: EagerRun | None = None
    decisions: list[Decision] = field(default_factory=list)


def user_kernel_findings(graphs: Iterable[LoweredGraph]) -> list[Finding]:
    """One for each hand-written Triton kernel and line."""
    found = dict.fromkeys(kernel for graph in graphs for kernel in graph.user_kernels)
    return [
        finding("user-kernel", place, f"The hand-written Triton kernel {name} is captured without a graph break.")
        for name, place in found
    ]
