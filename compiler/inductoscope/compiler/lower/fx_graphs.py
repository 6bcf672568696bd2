"""The graphs that AOTAutograd and Inductor make of one captured graph, stage by stage.

What is kept for training is read at the same moment, while both halves of a training graph are at hand.  It knows
nothing of kernels.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from torch import fx

from inductoscope.compiler import fx_nodes
from inductoscope.compiler.compat import fx as compat
from inductoscope.compiler.compat import inductor
from inductoscope.compiler.fx_nodes import Allowance, Origins, Seen
from inductoscope.compiler.lower import training
from inductoscope.compiler.lower.places import Places
from inductoscope.protocol.report import FxGraph, Phase, Place, Recomputation, SavedTensor, Stage

MOST_NODES = 8000
"""Nodes that the graphs of one run are told with; a node costs 0.06 ms of processor time and 0.2 kB on its way."""

MOST_JOINT = 2000
"""The same for a joint graph, which says little that its two halves do not say."""

Reading = Callable[[], contextlib.AbstractContextManager[None]]


@dataclass
class GraphStages:
    """What became of one captured graph; `reading` is entered to read facts, so that no error of ours gets out.

    `sources` are what the program calls each of its inputs.
    """

    graph: str
    places: Places
    allowance: Allowance
    reading: Reading
    sources: tuple[str | None, ...] = ()
    graphs: list[FxGraph] = field(default_factory=list)
    saved: list[SavedTensor] = field(default_factory=list)
    recomputed: list[Recomputation] = field(default_factory=list)

    def captured(self, module: fx.GraphModule) -> None:
        """Take in the graph as Dynamo made it, before Inductor changes it."""
        with self.reading():
            self.sources = fx_nodes.sources_of_inputs(module)

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """See the graphs before Inductor's passes for the duration of the block."""
        with (
            inductor.replaced(compat.PARTITION, compat.partitions(self._joint, self._partitioned)),
            inductor.replaced(compat.COMPILE_FORWARD, compat.inference(self._inference)),
            inductor.replaced(compat.COMPILE_FREEZING, compat.freezing(self._inference)),
        ):
            yield

    def lowered(self, module: fx.GraphModule, phase: Phase) -> None:
        """Take in a graph after all passes; to be called inside `reading`."""
        self._add(module, Stage.LOWERED, phase)

    def _joint(self, module: fx.GraphModule) -> None:
        with self.reading():
            few = Allowance(min(MOST_JOINT, self.allowance.nodes))
            start = few.nodes
            self.graphs += fx_nodes.told(module, Seen(self.graph, Stage.JOINT, Phase.FORWARD), self._origins(), few)
            self.allowance.nodes -= start - few.nodes

    def _partitioned(self, forward: fx.GraphModule, backward: fx.GraphModule, results: int) -> None:
        with self.reading():
            self._add(forward, Stage.PARTITIONED, Phase.FORWARD)
            self._add(backward, Stage.PARTITIONED, Phase.BACKWARD)
            both = training.Partitioned(self.graph, forward, backward, results)
            self.saved += training.saved(both, self.places, self._source)
            self.recomputed += training.recomputed(both, self.places)

    def _inference(self, module: fx.GraphModule) -> None:
        with self.reading():
            self._add(module, Stage.PARTITIONED, Phase.FORWARD)

    def _add(self, module: fx.GraphModule, stage: Stage, phase: Phase) -> None:
        self.graphs += fx_nodes.told(module, Seen(self.graph, stage, phase), self._origins(), self.allowance)

    def _origins(self) -> Origins:
        return Origins(self._place, self._source)

    def _source(self, node: fx.Node) -> str | None:
        index = compat.input_index(node) if node.op == "placeholder" else None
        return self.sources[index] if index is not None and index < len(self.sources) else None

    def _place(self, node: fx.Node) -> Place | None:
        """The line that torch itself ties to the node; an input belongs to none."""
        stack = node.meta.get("stack_trace") if node.op != "placeholder" else None
        return self.places.in_stack(stack if isinstance(stack, str) else None)
