"""Inductor in the place where the user's program calls it, recorded instead of run.

`Lowering` answers for `torch.compile`'s default backend while the program runs once: it lets Inductor compile each
captured graph in line (so that Inductor's own guards take part), keeps what it generated, and hands back the graph to
be run op by op.  It knows nothing of Dynamo's breaks and guards.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Protocol

import torch

from inductoscope.compiler.card.replay import Replay
from inductoscope.compiler.compat import inductor as compat
from inductoscope.compiler.compat.backend_refusals import kept_by_dynamo
from inductoscope.compiler.fx_nodes import Allowance
from inductoscope.compiler.kernel_owners import own_name
from inductoscope.compiler.lower import card_decisions, cudagraphs
from inductoscope.compiler.lower.backward import BackwardPasses
from inductoscope.compiler.lower.cache_log import CacheLog, UsersCaches
from inductoscope.compiler.lower.dynamo_passes import DynamoPasses
from inductoscope.compiler.lower.eager import copied
from inductoscope.compiler.lower.eager_ops import EagerRun, Rerun
from inductoscope.compiler.lower.errors import error_finding, is_ours, own_failure
from inductoscope.compiler.lower.facts import Backward, Depth, LowerFacts
from inductoscope.compiler.lower.findings import finding
from inductoscope.compiler.lower.fx_graphs import MOST_NODES, GraphStages
from inductoscope.compiler.lower.groups import build_groups
from inductoscope.compiler.lower.kernels import KernelBuilder
from inductoscope.compiler.lower.library import Fallback, fallbacks, library_findings
from inductoscope.compiler.lower.line_map import source_of
from inductoscope.compiler.lower.memory import add, memory_of
from inductoscope.compiler.lower.overwritten import overwritten_finding
from inductoscope.compiler.lower.passes import PassWatch
from inductoscope.compiler.lower.places import Ownership, Places
from inductoscope.compiler.lower.program_caches import ProgramCaches
from inductoscope.compiler.lower.record_mode import Choices, record_mode, settings, users_settings
from inductoscope.compiler.lower.recording import Compilation, Recording
from inductoscope.compiler.lower.signatures import Signatures, expectations
from inductoscope.compiler.lower.who_computes import Platform
from inductoscope.compiler.predict.whole import GraphCall
from inductoscope.compiler.timeline import EAGER, OURS, Timeline
from inductoscope.protocol.devices import Device
from inductoscope.protocol.report import Decision, Finding, FusionGroup, Kernel, Memory, Phase, Place, Wrapper

_LOG = logging.getLogger(__name__)

Runner = Callable[..., Any]


class Simulation(Protocol):
    """What lowering needs of a simulated device."""

    @property
    def device(self) -> Device:
        """The GPU that is simulated."""

    @property
    def replay(self) -> Replay:
        """What torch decided on the card, as far as that was recorded."""

    def compiling(self) -> contextlib.AbstractContextManager[Any]:
        """Around each call of Inductor."""

    def eager(self, graph: torch.fx.GraphModule) -> Runner:
        """Something that runs a captured graph op by op on the simulated device."""

    @property
    def shapes_only(self) -> Any:
        """The mode in which operators on the device make tensors that nobody can look into."""


@dataclass
class _Graph:
    """What became of one captured graph."""

    id: str
    attempt: int
    verdict: cudagraphs.Verdict
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


class Lowering(contextlib.AbstractContextManager["Lowering"]):
    """Observes Inductor while the block runs.  `device` is `cpu` or `sim:NAME`; a simulation has to be active then.

    `timeline` is told how long graphs run op by op, and what reading facts costs; `caches` is what is known of the
    user's own caches.
    """

    def __init__(
        self,
        user_code: Ownership,
        device: str,
        depth: Depth,
        backward: Backward = Backward.ALWAYS,
        timeline: Timeline | None = None,
        caches: UsersCaches | None = None,
    ) -> None:
        self._user_code = user_code
        self._places = Places(user_code)
        self._depth = depth
        self._backward = backward
        self._simulation = _simulation() if device.startswith("sim:") else None
        self._replay = self._simulation.replay if self._simulation is not None else Replay()
        self._platform = Platform.of(self._simulation.device if self._simulation is not None else None)
        self._timeline = timeline or Timeline()
        users = caches or UsersCaches(None)
        self._caches = CacheLog(users, self._places, self._timeline)
        self._program_caches = ProgramCaches(users, self._caches.reading)
        self._tidying = DynamoPasses()
        self._nodes_to_tell = Allowance(MOST_NODES)
        self._graphs: list[_Graph] = []
        self._errors: list[Finding] = []
        self._problems: list[str] = []
        self._call: int | None = None
        self._stack = contextlib.ExitStack()

    def begin_call(self, index: int) -> None:
        """The target is called for the `index`-th time."""
        self._call = index

    def __enter__(self) -> Lowering:
        """Take the place of the default backend."""
        self._stack.enter_context(compat.replaced(compat.ENTRY, lambda _: self._entry()))
        self._stack.enter_context(self._tidying.watching())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Give the default backend back."""
        self._stack.close()

    def facts(self) -> LowerFacts:
        """Everything found so far."""
        memory = Memory()
        for graph in self._graphs:
            memory = add(memory, graph.memory)
        verdicts = [graph.verdict for graph in self._graphs]
        kernels = tuple(kernel for graph in self._graphs for kernel in graph.kernels)
        return LowerFacts(
            fusion_groups=tuple(group for graph in self._graphs for group in graph.groups),
            kernels=kernels,
            wrappers=tuple(wrapper for graph in self._graphs for wrapper in graph.wrappers),
            memory=memory,
            cudagraphs=cudagraphs.summary(verdicts),
            caches=(*self._caches.facts(), *self._program_caches.facts(kernels)),
            cache_keys=self._caches.keys(),
            passes=tuple(fact for graph in self._graphs for fact in graph.passes.facts()),
            fx_graphs=tuple(told for graph in self._graphs for told in graph.stages.graphs),
            saved=tuple(kept for graph in self._graphs for kept in graph.stages.saved),
            recomputed=tuple(again for graph in self._graphs for again in graph.stages.recomputed),
            findings=(
                *self._errors,
                *(found for graph in self._graphs for found in graph.signatures.findings(graph.verdict.place)),
                *library_findings(fallback for graph in self._graphs for fallback in graph.fallbacks),
                *_user_kernel_findings(self._graphs),
                *cudagraphs.findings(verdicts, self._places),
                *(found for graph in self._graphs for found in graph.backward.findings(graph.id, graph.verdict.place)),
            ),
            problems=tuple(self._problems),
            decisions=tuple(one for graph in self._graphs for one in graph.decisions),
            graph_calls=tuple(_graph_call(graph) for graph in self._graphs if graph.eager is not None),
        )

    def _entry(self) -> Callable[..., Runner]:
        """What runs instead of `_TorchCompileInductorWrapper.__call__`."""

        def compile_graph(
            backend: Any, model: torch.fx.GraphModule, inputs: Sequence[Any], *, config_patches: Any = None
        ) -> Runner:
            if self._depth is Depth.GRAPHS:
                return self._runner(model)
            with self._timeline.phase(OURS):
                kept = copied(model)  # Inductor changes the graph it is given
                runner = self._runner(kept)
            options = {**backend.config, **(config_patches or {})}
            graph = self._lower(model, list(inputs), options, getattr(backend, "name", None))

            def run(*args: Any) -> Any:
                graph.verdict.called_with(args)
                graph.signatures.called_with(args)
                graph.in_first_call += self._call == 0
                self._note_eager(graph, kept, args)
                return runner(*args)

            return run

        return compile_graph

    def _runner(self, graph: torch.fx.GraphModule) -> Runner:
        forward = self._simulation.eager(graph) if self._simulation else graph.forward
        graph_id, _ = compat.compile_id()

        def run(*args: Any) -> Any:
            with self._timeline.phase(EAGER, graph_id):
                return forward(*args)

        return run

    def _note_eager(self, graph: _Graph, kept: torch.fx.GraphModule, args: Sequence[Any]) -> None:
        """At its first run, what the graph would dispatch without compilation."""
        if self._simulation is not None and graph.eager is None:
            with self._timeline.phase(OURS):
                graph.eager = Rerun(kept.graph, self._simulation.eager(kept), self._simulation.shapes_only).on(args)

    def _lower(
        self, model: torch.fx.GraphModule, inputs: list[Any], options: dict[str, Any], region: str | None
    ) -> _Graph:
        """Compile one captured graph in record mode and keep what came of it."""
        user = settings(options)
        graph_id, attempt = compat.compile_id()
        # Dynamo began anew: what an earlier attempt at the same graph generated is not part of the program.
        self._graphs = [g for g in self._graphs if g.id != graph_id or g.attempt == attempt]
        names = tuple(node.name for node in model.graph.nodes if node.op == "placeholder")
        verdict = cudagraphs.Verdict(self._beginning(model), _asks_for_cudagraphs(user))
        passes = PassWatch(graph_id, self._places, self._tidying.take(graph_id, attempt))
        stages = GraphStages(graph_id, self._places, self._nodes_to_tell, lambda: self._reading(graph_id))
        stages.captured(model)
        graph = _Graph(graph_id, attempt, verdict, Signatures(names), BackwardPasses(self._backward), passes, stages)
        choices = Choices(self._replay)
        recording = Recording(lambda noted: self._keep(graph, noted, choices))
        try:
            with contextlib.ExitStack() as stack:
                own = users_settings(options)
                started = self._program_caches.compiling(graph_id, attempt, {**own.everything, **options})
                stack.enter_context(self._caches.watching(graph_id, attempt, own))
                stack.enter_context(record_mode(choices, started))
                stack.enter_context(recording.watching())
                stack.enter_context(graph.passes.watching())
                stack.enter_context(graph.stages.watching())
                stack.enter_context(graph.verdict.deciding())
                stack.enter_context(graph.backward.deciding())
                if self._simulation:
                    stack.enter_context(self._simulation.compiling())
                compat.compile_fx(model, inputs, user, region)
        except kept_by_dynamo():
            raise
        except Exception as error:  # whatever Inductor raises would reach the user as a failed compilation
            _LOG.info("Inductor failed on graph %s", graph_id, exc_info=True)
            if is_ours(error):
                self._problems.append(own_failure(error, graph_id))
                return graph
            begins = graph.verdict.place
            overwritten = overwritten_finding(error, model.graph, self._places, begins)
            self._errors.append(overwritten or error_finding(error, recording.failed_node, self._places, begins))
            return graph
        if self._simulation is not None:
            with self._reading(graph_id):
                graph.decisions += card_decisions.of_graph(graph_id, own.everything, verdict.place)
                graph.decisions += card_decisions.of_kernels(graph.kernels, self._replay)
        self._graphs.append(graph)
        return graph

    def _keep(self, graph: _Graph, noted: Compilation, choices: Choices) -> None:
        """Read what was noted while Inductor still holds the scheduler."""
        with self._reading(graph.id), compat.without_guards(noted.graph):
            self._read(graph, noted, choices)

    @contextlib.contextmanager
    def _reading(self, graph_id: str) -> Iterator[None]:
        """Around whatever only reads facts: a failure to do so must not change the run."""
        try:
            with self._timeline.phase(OURS):
                yield
        except Exception as error:  # an unknown version of torch may surprise in any way
            _LOG.warning("cannot read graph %s", graph_id, exc_info=True)
            self._problems.append(own_failure(error, graph_id))

    def _read(self, graph: _Graph, noted: Compilation, choices: Choices) -> None:
        """Turn what was noted into report types."""
        phase = Phase.BACKWARD if noted.graph.is_backward else Phase.FORWARD
        sources = [source_of(noted, call) for call in noted.calls]
        first = len(graph.groups) + sum(len(other.groups) for other in self._graphs if other.id == graph.id)
        groups = build_groups(noted, graph.id, first, self._places, sources)
        kernels = KernelBuilder(noted, graph.id, phase, self._places, choices, self._platform).build(sources)
        graph.groups += groups
        graph.kernels += kernels
        graph.user_kernels += [(own_name(k), place) for k in kernels if k.user_written for place in k.lines]
        language = "cpp" if noted.graph.cpp_wrapper else "python"
        graph.wrappers.append(Wrapper(graph.id, phase, language, noted.wrapper))
        graph.fallbacks += fallbacks(noted, phase, self._places)
        graph.memory = add(graph.memory, memory_of(noted))
        graph.stages.lowered(noted.graph.module, phase)
        graph.signatures.expected += expectations(noted, self._places)
        graph.verdict.partitions += noted.partitions
        graph.verdict.on_cuda |= "cuda" in noted.graph.device_types

    def _beginning(self, model: torch.fx.GraphModule) -> Place:
        """Where the compiled function begins; for a library's, the graph's first user line, else the call."""
        code = compat.compiled_code()
        if code is not None and self._user_code.is_user(code.co_filename):
            return Place(code.co_filename, code.co_firstlineno, code.co_name)
        first = next((place for node in model.graph.nodes if (place := self._places.of(node))), None)
        calls = (place for place in compat.python_stack() if self._user_code.is_user(place.file))
        library = Place(code.co_filename, code.co_firstlineno, code.co_name) if code else Place("<unknown>", 1)
        return first or next(calls, library)


def _graph_call(graph: _Graph) -> GraphCall:
    eager = graph.eager or EagerRun(None)
    return GraphCall(graph.id, graph.in_first_call, eager.forward, eager.backward, eager.missing)


def _asks_for_cudagraphs(user: dict[str, Any]) -> bool:
    return bool(user.get("triton.cudagraphs", compat.inductor_config().triton.cudagraphs))


def _user_kernel_findings(graphs: list[_Graph]) -> list[Finding]:
    found = dict.fromkeys(kernel for graph in graphs for kernel in graph.user_kernels)
    return [
        finding("user-kernel", place, f"The hand-written Triton kernel {name} is captured without a graph break.")
        for name, place in found
    ]


def _simulation() -> Simulation:
    """The simulation of this process.  Raises RuntimeError when none was started."""
    from inductoscope.compiler import simgpu

    active = simgpu.active()
    if active is None:
        raise RuntimeError("lowering for a simulated device needs an active simulation")
    simulation: Simulation = active
    return simulation
