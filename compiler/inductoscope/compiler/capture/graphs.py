"""The graphs that Dynamo hands to the backend, and what is worth knowing about each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from torch import fx

from inductoscope.compiler import fx_nodes
from inductoscope.compiler.capture import caches, dtypes, loops, nodes
from inductoscope.compiler.capture.findings import at_line
from inductoscope.compiler.compat import dynamo, dynamo_stacks
from inductoscope.compiler.fx_nodes import Allowance, Origins, Seen
from inductoscope.compiler.usercode import UserCode
from inductoscope.protocol.messages import Target
from inductoscope.protocol.report import CacheFact, Finding, FxGraph, Graph, Phase, Place, Stage

MOST_NODES = 4000
"""Nodes that the captured graphs of one run are told with; a node costs 0.06 ms of processor time and 0.2 kB."""

PIECE_RECORD = "optimize_ddp_split_child"  # one for each graph that DDPOptimizer makes of a captured one


@dataclass(frozen=True)
class _Seen:
    """A graph and what was read off it; the graph itself is not kept, for the backend may change it."""

    graph: Graph
    nodes: tuple[FxGraph, ...]
    unrolled: loops.Unrolled | None
    leaks: tuple[dtypes.Leak, ...]
    bypass: caches.Bypass | None
    trains: bool  # its backward would be compiled by Inductor


class GraphLog:
    """Collects graphs in the order of compilation."""

    def __init__(self, user_code: UserCode, target: Target, program: caches.Program) -> None:
        self._user_code = user_code
        self._target = target
        self._program = program
        self._backward = False
        self._seen: list[_Seen] = []
        self._pieces: Counter[str] = Counter()
        self._nodes_to_tell = Allowance(MOST_NODES)
        self._origins = Origins(self._place, fx_nodes.source_of_input)

    def meet(self, event: dynamo.GraphEvent) -> None:
        """Take in a graph."""
        self._seen.append(
            _Seen(
                graph=self._graph(event),
                nodes=self._told(event),
                unrolled=loops.unrolled(event.module, self._user_code),
                leaks=tuple(dtypes.leaks(event.module, self._user_code)),
                bypass=caches.bypass(event.module, self._user_code) if event.inductor else None,
                trains=event.inductor and caches.trains(event.module),
            )
        )

    def give_up(self, compile_id: str) -> None:
        """Take in that nothing will come of the graph that was met last."""
        if self._seen and self._seen[-1].graph.id == compile_id:
            self._seen.pop()

    def meet_piece(self, compile_id: str) -> None:
        """Take in that the backend cut one more piece off a graph."""
        self._pieces[compile_id] += 1

    def meet_backward(self) -> None:
        """Take in that the program asked for gradients."""
        self._backward = True

    def graphs(self) -> tuple[Graph, ...]:
        """Every graph."""
        return tuple(seen.graph for seen in self._seen)

    def fx_graphs(self) -> tuple[FxGraph, ...]:
        """The nodes of every graph."""
        return tuple(told for seen in self._seen for told in seen.nodes)

    def caches(self) -> tuple[CacheFact, ...]:
        """What is known of the compile caches."""
        facts = [caches.refused(seen.bypass, seen.graph.id) for seen in self._seen if seen.bypass]
        never = [caches.never_saved(seen.graph.id) for seen in self._seen if self._never_saved(seen)]
        return tuple(dict.fromkeys((*facts, *never)))

    def findings(self, seconds: Callable[[str], float]) -> tuple[Finding, ...]:
        """Each thing once; `seconds` tells how long Dynamo took for a compilation."""
        found: dict[tuple[str, str, int], Finding] = {}
        for seen in self._seen:
            for one in self._of(seen, seconds):
                found.setdefault((one.code, one.file, one.line), one)
        return tuple(found.values())

    def _graph(self, event: dynamo.GraphEvent) -> Graph:
        """The report's entry for a graph; a function of torch's that wraps the user's is told as the target."""
        place = dynamo_stacks.code_place(event.code) if event.code else None
        ops = sum(1 for _ in nodes.calls(event.module))
        if place is None or not self._user_code.is_user(place.file):
            return Graph(event.compile_id, self._target.name, self._target.file, self._target.line, ops)
        return Graph(event.compile_id, place.function, place.file, place.line, ops)

    def _told(self, event: dynamo.GraphEvent) -> tuple[FxGraph, ...]:
        seen = Seen(event.compile_id, Stage.CAPTURED, Phase.FORWARD)
        return tuple(fx_nodes.told(event.module, seen, self._origins, self._nodes_to_tell))

    def _place(self, node: fx.Node) -> Place | None:
        """The line that Dynamo traced when it made the node; an input belongs to none."""
        return None if node.op == "placeholder" else self._user_code.innermost_user(nodes.stack(node))

    def _never_saved(self, seen: _Seen) -> bool:
        return self._program is caches.Program.WHOLE and seen.trains and not seen.bypass and not self._backward

    def _of(self, seen: _Seen, seconds: Callable[[str], float]) -> Iterator[Finding]:
        if seen.unrolled:
            yield _large_graph(seen.unrolled, seconds(seen.graph.id))
        yield from (_leak(leak) for leak in seen.leaks)
        if seen.bypass:
            yield _bypass(seen.bypass, self._target)
        if self._never_saved(seen):
            yield _not_saved(seen.graph)
        if self._pieces[seen.graph.id] > 1:
            yield _split(seen.graph, self._pieces[seen.graph.id])


_REPEATED = {
    loops.Kind.LOOP: (
        "unrolled this loop",
        "compiling the loop's body as a function of its own keeps one copy",
    ),
    loops.Kind.RECURSION: (
        "went through this recursive call",
        "a loop whose body is compiled as a function of its own keeps one copy",
    ),
}


def _large_graph(unrolled: loops.Unrolled, seconds: float) -> Finding:
    took = f" Tracing took {seconds:.1f} s here." if seconds else ""
    what, advice = _REPEATED[unrolled.by.kind]
    message = (
        f"Dynamo {what} {unrolled.times} times: {unrolled.ops} of the graph's {unrolled.total} operators come from it."
        f"{took} Compile time grows with each round; {advice}."
    )
    return at_line("large-graph", unrolled.by.file, unrolled.by.line, message, count=unrolled.times)


def _leak(leak: dtypes.Leak) -> Finding:
    if leak.wide.startswith("complex"):
        cost = "Inductor generates no code for complex operators."
    else:
        cost = f"Convert it to {leak.narrow} first unless the wider type is meant."
    message = f"{leak.wide} from here on: a {leak.wide} tensor meets {leak.narrow} numbers on this line. {cost}"
    return at_line("dtype-note", leak.at.file, leak.at.line, message, function=leak.at.function)


def _bypass(bypass: caches.Bypass, target: Target) -> Finding:
    file, line = (bypass.at.file, bypass.at.line) if bypass.at else (target.file, target.line)
    message = (
        f"`{bypass.what}` keeps this graph out of the AOTAutograd cache, so every start of the program traces and "
        "partitions it anew; generated code may still come from the FX-graph cache."
    )
    return at_line("cache-bypass", file, line, message)


def _not_saved(graph: Graph) -> Finding:
    message = (
        "This graph was compiled for training, but the program never ran its backward. The AOTAutograd cache saves an "
        "entry once the backward is compiled, so every start of the program traces and partitions this graph anew. For "
        "inference, call it under torch.no_grad()."
    )
    return at_line("cache-not-saved", graph.file, graph.line, message, function=graph.function)


def _split(graph: Graph, pieces: int) -> Finding:
    message = (
        f"DistributedDataParallel cuts the captured graph {graph.id} into {pieces} graphs at its bucket borders, so "
        "that gradients can be sent early. Nothing is fused across a border; `bucket_cap_mb` moves them."
    )
    return at_line("backend-split", graph.file, graph.line, message, count=pieces, function=graph.function)
