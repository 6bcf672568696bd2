"""Which passes changed an FX graph on its way to kernels, and which patterns they replaced.

Every pass is seen from outside: the graph's nodes are compared before and after.  What changes between two passes that
torch names is told as such, so that the counts of a stage always join up.  A pass inside another one is told by itself;
the outer one only for what it changes besides.  It knows nothing of what a pass is for.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from inductoscope.compiler.compat import inductor as compat
from inductoscope.compiler.compat import passes as points
from inductoscope.compiler.lower.places import Places, distinct
from inductoscope.protocol.report import PassFact, PassStage, PatternFact, Phase, Place

BETWEEN = "(passes without a name)"
DEAD_CODE = "eliminate_dead_code"

_CALLS = frozenset({"call_function", "call_method", "call_module"})
_PLAIN = (str, int, float, complex, bool, type(None), torch.dtype, torch.device, torch.layout, torch.memory_format)

Shape = list[tuple[torch.fx.Node, Any, Any, Any]]
"""A graph's nodes in order, each with its target, arguments and keyword arguments."""


def shape_of(graph: torch.fx.Graph) -> Shape:
    """What a graph is now; cheap, since nothing in it is copied."""
    return [(node, node.target, node.args, node.kwargs) for node in graph.nodes]


def operators(shape: Shape) -> int:
    """The calls of a graph."""
    return sum(node[0].op in _CALLS for node in shape)


def same(one: Shape, other: Shape) -> bool:
    """Whether a graph computes by the same nodes in the same order from the same arguments."""
    return len(one) == len(other) and all(
        a[0] is b[0] and a[1] is b[1] and _equal(a[2], b[2]) and _equal(a[3], b[3])
        for a, b in zip(one, other, strict=True)
    )


def _equal(one: Any, other: Any) -> bool:
    """Equality of arguments.  Symbolic sizes are not compared by value, which would make guards of the comparison."""
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if isinstance(one, tuple | list):
        return len(one) == len(other) and all(map(_equal, one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_equal(one[key], other[key]) for key in one)
    if isinstance(one, slice):
        return _equal((one.start, one.stop, one.step), (other.start, other.stop, other.step))
    return isinstance(one, _PLAIN) and one == other


@dataclass
class _Matches:
    """How often a pattern was replaced in a pass."""

    fired: int = 0
    nodes: int = 0
    places: list[Place | None] = field(default_factory=list)

    def add(self, more: _Matches) -> None:
        self.fired += more.fired
        self.nodes += more.nodes
        self.places += more.places

    def fact(self, name: str) -> PatternFact:
        return PatternFact(name, self.fired, self.nodes, distinct(self.places))


@dataclass
class _Pass:
    """A pass that is running."""

    name: str
    before: int
    changed: bool = False
    patterns: dict[str, _Matches] = field(default_factory=dict)


@dataclass
class _Frame:
    """A stage's passes over one graph, from the first to the last."""

    module: Any
    stage: PassStage
    subgraph: str | None
    seen: Shape
    running: list[_Pass] = field(default_factory=list)
    successor: torch.fx.Graph | None = None  # a copy that has been told of, and will take the graph's place

    @property
    def graph(self) -> torch.fx.Graph | None:
        return points.graph_of(self.module)


class PassWatch:
    """Notes the passes over the graphs of one captured graph while `watching`; `before` are those that came earlier."""

    def __init__(self, graph_id: str, places: Places, before: Iterable[PassFact] = ()) -> None:
        self._graph_id = graph_id
        self._places = places
        self._frames: list[_Frame] = []
        self._facts = list(before)
        self._phase = Phase.FORWARD

    def facts(self) -> tuple[PassFact, ...]:
        """The passes that changed something, in order."""
        return tuple(self._facts)

    def known(self, facts: Iterable[PassFact]) -> None:
        """Take in the passes that an earlier run saw over the same graph."""
        self._facts += facts

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Take notes for the duration of the block."""
        with contextlib.ExitStack() as stack:
            enter = stack.enter_context
            enter(compat.replaced(points.OBSERVER_ENTER, self._observer_enter))
            enter(compat.replaced(points.OBSERVER_EXIT, self._observer_exit))
            enter(compat.replaced(points.ELIMINATE_DEAD_CODE, self._dead_code))
            for point in points.SHARED_SUBEXPRESSIONS:
                enter(compat.replaced(point, self._shared_subexpressions))
            enter(compat.replaced(points.CODEGEN, self._codegen))
            for stage in points.STAGES:
                enter(compat.replaced(stage.point, self._stage(stage)))
            for function in points.FUNCTIONS:
                enter(compat.replaced(function.point, self._function(function)))
            for pattern in points.PATTERNS:
                enter(compat.replaced(pattern, self._pattern))
            yield

    @contextlib.contextmanager
    def passing(self, owner: Any, name: str, stage: PassStage) -> Iterator[None]:
        """A pass of its own over the graph of `owner`; part of the stage that is running there, if any."""
        graph = points.graph_of(owner)
        if graph is None:
            yield
            return
        frame = self._frame_of(graph)
        if frame is None:
            if self._frames:  # a graph that torch traces for itself: a pattern, a candidate
                yield
                return
            with self._staged(owner, stage), self.passing(owner, name, stage):
                yield
            return
        self._begin(frame, name)
        try:
            yield
        finally:
            self._end(frame)

    @contextlib.contextmanager
    def _staged(self, module: Any, stage: PassStage) -> Iterator[None]:
        graph = points.graph_of(module)
        if graph is None:
            yield
            return
        frame = _Frame(module, stage, self._name_of(module), shape_of(graph))
        self._frames.append(frame)
        try:
            yield
        finally:
            self._look(frame)
            self._frames.remove(frame)

    def _name_of(self, module: Any) -> str | None:
        """The name under which the graph that is being worked on holds this one."""
        if not self._frames or not isinstance(self._frames[-1].module, torch.nn.Module):
            return None
        outer = self._frames[-1]
        own = next((name for name, child in outer.module.named_children() if child is module), None)
        return ".".join(filter(None, (outer.subgraph, own))) or None

    def _frame_of(self, graph: torch.fx.Graph) -> _Frame | None:
        return next((frame for frame in reversed(self._frames) if frame.graph is graph), None)

    def _look(self, frame: _Frame) -> None:
        """Charge what has changed since the last look to the innermost pass that is running, or to none."""
        graph = frame.graph
        if graph is None:
            return
        now = shape_of(graph)
        if graph is frame.successor:
            frame.successor = None
        elif not same(frame.seen, now):
            if frame.running:
                frame.running[-1].changed = True
            else:
                self._tell(frame, _Pass(BETWEEN, operators(frame.seen), changed=True), operators(now))
        frame.seen = now

    def _begin(self, frame: _Frame, name: str) -> None:
        self._look(frame)
        frame.running.append(_Pass(name, operators(frame.seen)))

    def _end(self, frame: _Frame) -> None:
        self._look(frame)
        ended = frame.running.pop()
        outer = frame.running[-1] if frame.running else None
        if outer is not None and ended.name in (points.UNNAMED, DEAD_CODE):
            outer.changed |= ended.changed
            for name, matches in ended.patterns.items():
                outer.patterns.setdefault(name, _Matches()).add(matches)
        elif ended.changed or ended.patterns:
            self._tell(frame, ended, operators(frame.seen))

    def _tell(self, frame: _Frame, done: _Pass, after: int) -> None:
        patterns = tuple(matches.fact(name) for name, matches in done.patterns.items())
        self._facts.append(
            PassFact(
                graph=self._graph_id,
                phase=self._phase,
                name=done.name,
                ops_before=done.before,
                ops_after=after,
                fired=sum(pattern.fired for pattern in patterns) if patterns else None,
                stage=frame.stage,
                subgraph=frame.subgraph,
                patterns=patterns,
                changed=done.changed,
            )
        )

    def _stage(self, stage: points.StagePoint) -> compat.Make:
        def make(original: Callable[..., Any]) -> Callable[..., Any]:
            def run(*args: Any, **kwargs: Any) -> Any:
                module = args[stage.argument] if len(args) > stage.argument else None
                with self._staged(module, stage.stage):
                    return original(*args, **kwargs)

            return run

        return make

    def _function(self, function: points.FunctionPoint) -> compat.Make:
        def make(original: Callable[..., Any]) -> Callable[..., Any]:
            def run(graph: Any, *args: Any, **kwargs: Any) -> Any:
                with self.passing(graph, function.name, function.stage):
                    return original(graph, *args, **kwargs)

            return run

        return make

    def _observer_enter(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def enter(observer: Any) -> Any:
            result = original(observer)
            graph = points.graph_of(observer.gm)
            frame = self._frame_of(graph) if graph is not None else None
            if frame is not None:
                self._begin(frame, str(observer.passname))
                observer.inductoscope_frame = frame
            return result

        return enter

    def _observer_exit(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def leave(observer: Any, *error: Any) -> Any:
            frame = vars(observer).pop("inductoscope_frame", None)
            if frame is not None:
                self._end(frame)
            return original(observer, *error)

        return leave

    def _dead_code(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def eliminate_dead_code(graph: Any, *args: Any, **kwargs: Any) -> Any:
            if self._frame_of(graph) is None and not points.called_by_tracer():
                return original(graph, *args, **kwargs)
            with self.passing(graph, DEAD_CODE, PassStage.AUTOGRAD):
                return original(graph, *args, **kwargs)

        return eliminate_dead_code

    def _shared_subexpressions(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def fx_graph_cse(graph: torch.fx.Graph, *args: Any, **kwargs: Any) -> torch.fx.Graph:
            result = original(graph, *args, **kwargs)
            before, after = operators(shape_of(graph)), operators(shape_of(result))
            frame = self._frame_of(graph)
            if before != after and (frame is not None or not self._frames):
                stage = frame.stage if frame is not None else PassStage.AUTOGRAD
                self._tell(_Frame(result, stage, None, []), _Pass("fx_graph_cse", before, changed=True), after)
            if frame is not None:
                frame.successor = result
            return result

        return fx_graph_cse

    def _pattern(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def apply(entry: Any, match: Any, graph: Any, node: Any) -> Any:
            frame = self._frame_of(graph)
            if frame is None or not frame.running:
                return original(entry, match, graph, node)
            places = [self._places.of(matched) for matched in match.nodes]
            result = original(entry, match, graph, node)
            matches = frame.running[-1].patterns.setdefault(points.pattern_name(entry), _Matches())
            matches.add(_Matches(1, len(match.nodes), places))
            return result

        return apply

    def _codegen(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def codegen_and_compile(scheme: Any, gm: Any, inputs: Any, check: Any, graph_kwargs: Any) -> Any:
            outer, self._phase = self._phase, Phase.BACKWARD if points.is_backward(graph_kwargs) else Phase.FORWARD
            try:
                return original(scheme, gm, inputs, check, graph_kwargs)
            finally:
                self._phase = outer

        return codegen_and_compile
