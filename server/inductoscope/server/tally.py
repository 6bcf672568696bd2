"""The numbers that sum up a report, the same wherever it is summed up.

They are about one forward pass of the program as first compiled; what recompiles add is a number of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

from inductoscope.protocol.report import FxGraph, Graph, Kernel, KernelLanguage, Phase, SavedKind, Stage, TargetReport


@dataclass(frozen=True)
class Tally:
    """Counts; `library` of the `kernels` are library calls, and `lowered` are the operators that passes leave.

    `lowered` is null where not every graph is known after its passes.
    """

    graphs: int
    ops: int
    kernels: int
    library: int
    breaks: int
    recompiles: int
    lowered: int | None = None

    @property
    def generated(self) -> int:
        """The kernels that are no library calls."""
        return self.kernels - self.library


def of(report: TargetReport) -> Tally:
    """The counts of a report."""
    graphs, kernels = first_graphs(report), first_kernels(report)
    return Tally(
        graphs=len(graphs),
        ops=sum(graph.ops for graph in graphs),
        kernels=len(kernels),
        library=sum(kernel.language is KernelLanguage.EXTERN for kernel in kernels),
        breaks=len(report.breaks),
        recompiles=len(report.recompiles),
        lowered=_lowered(report, graphs),
    )


def _lowered(report: TargetReport, graphs: list[Graph]) -> int | None:
    """The operators of these graphs after Inductor's passes."""
    after = {graph.graph: graph for graph in report.fx_graphs if _is_lowered_forward(graph)}
    known = [after[graph.id].ops for graph in graphs if graph.id in after]
    return sum(known) if known and len(known) == len(graphs) else None


def _is_lowered_forward(graph: FxGraph) -> bool:
    return (graph.stage, graph.phase, graph.body) == (Stage.LOWERED, Phase.FORWARD, None)


@dataclass(frozen=True)
class Training:
    """What one training step keeps and computes again, as first compiled.

    `tensors` take `bytes` (a view of another one that is kept takes none), of which `inputs` with `input_bytes` are
    arguments, parameters or views of them.  `recomputed` leaves out the `views`, which compute nothing.
    """

    tensors: int
    bytes: int
    inputs: int
    input_bytes: int
    recomputed: int
    views: int


def training(report: TargetReport) -> Training | None:
    """The sum of all graphs that train; None where none does."""
    saved = [one for one in report.saved if is_first_version(one.graph) and one.kind is not SavedKind.SIZE]
    again = [one for one in report.recomputed if is_first_version(one.graph)]
    if not saved and not again:
        return None
    held = {(one.graph, one.name) for one in saved}
    counted = {one: 0 if (one.graph, one.base) in held else one.bytes or 0 for one in saved}
    inputs = [one for one in saved if one.kind is SavedKind.INPUT]
    return Training(
        tensors=len(saved),
        bytes=sum(counted.values()),
        inputs=len(inputs),
        input_bytes=sum(counted[one] for one in inputs),
        recomputed=sum(not one.view for one in again),
        views=sum(one.view for one in again),
    )


def forward_graphs(report: TargetReport) -> list[Graph]:
    """The graphs that were captured; those of backward passes are made of them."""
    return [graph for graph in report.graphs if graph.phase is Phase.FORWARD]


def first_graphs(report: TargetReport) -> list[Graph]:
    """The forward graphs of the first version of each function."""
    return [graph for graph in forward_graphs(report) if is_first_version(graph.id)]


def first_kernels(report: TargetReport) -> list[Kernel]:
    """The forward kernels of the first version of each function."""
    return [kernel for kernel in report.kernels if kernel.phase is Phase.FORWARD and is_first_version(kernel.graph)]


def is_first_version(compile_id: str) -> bool:
    """Whether a compile id (`0/0`, `2/1_1`) is of the first version of its function."""
    return compile_id.partition("/")[2].partition("_")[0] in ("0", "")
