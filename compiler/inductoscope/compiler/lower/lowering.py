"""Inductor in the place where the user's program calls it, recorded instead of run.

`Lowering` answers for `torch.compile`'s default backend while the program runs once: it lets Inductor compile each
captured graph in line (so that Inductor's own guards take part), keeps what it generated, and hands back the graph to
be run op by op.  It knows nothing of Dynamo's breaks and guards.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Protocol

import torch

from inductoscope.compiler.card.replay import Replay
from inductoscope.compiler.compat import identity, troubles
from inductoscope.compiler.compat import inductor as compat
from inductoscope.compiler.compat.backend_refusals import kept_by_dynamo, skip_behind
from inductoscope.compiler.compat.caches import UserSettings
from inductoscope.compiler.fx_nodes import Allowance
from inductoscope.compiler.kernel_owners import own_name
from inductoscope.compiler.lower import card_decisions, cudagraphs
from inductoscope.compiler.lower.backward import BackwardPasses
from inductoscope.compiler.lower.cache_log import CacheLog, UsersCaches
from inductoscope.compiler.lower.dynamo_passes import DynamoPasses
from inductoscope.compiler.lower.eager import copied
from inductoscope.compiler.lower.errors import error_finding, is_ours, own_failure
from inductoscope.compiler.lower.facts import Backward, Depth, LowerFacts
from inductoscope.compiler.lower.fx_graphs import MOST_NODES, GraphStages
from inductoscope.compiler.lower.groups import build_groups
from inductoscope.compiler.lower.kernels import KernelBuilder
from inductoscope.compiler.lower.library import fallbacks, library_findings
from inductoscope.compiler.lower.line_map import source_of
from inductoscope.compiler.lower.lowered import LoweredGraph, user_kernel_findings
from inductoscope.compiler.lower.memory import add, memory_of
from inductoscope.compiler.lower.overwritten import overwritten_finding
from inductoscope.compiler.lower.passes import PassWatch
from inductoscope.compiler.lower.places import Ownership, Places
from inductoscope.compiler.lower.program_caches import ProgramCaches
from inductoscope.compiler.lower.record_mode import Choices, record_mode, settings, users_settings
from inductoscope.compiler.lower.recording import Compilation, Recording
from inductoscope.compiler.lower.reuse import Journal, Lookup, Reuse, Shelf
from inductoscope.compiler.lower.reuse.entry import Around, Entry, questions_of, told_again
from inductoscope.compiler.lower.signatures import Signatures, expectations
from inductoscope.compiler.lower.who_computes import Platform
from inductoscope.compiler.predict.eager import EagerRun
from inductoscope.compiler.predict.whole import GraphCall
from inductoscope.compiler.timeline import EAGER, OURS, UNCHANGED, Timeline
from inductoscope.protocol.devices import Device
from inductoscope.protocol.report import Decision, Finding, Memory, Phase, Place, Wrapper

_LOG = logging.getLogger(__name__)

Runner = Callable[..., Any]


class Simulation(Journal, Protocol):
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

    def eager_run(self, graph: torch.fx.GraphModule, args: Sequence[Any]) -> EagerRun:
        """What a captured graph would dispatch without compilation, forward and backward."""

    def note_again(self, topic: str, text: str, place: Place | None, subject: str | None) -> None:
        """Take in a note of an earlier run."""

    def decide_again(self, decision: Decision) -> None:
        """Take in what an earlier run says that the card would have decided."""


@dataclass(frozen=True)
class _Job:
    """A captured graph and what to lower it with; `user` are the settings of record mode, `own` the user's own."""

    graph: LoweredGraph
    model: torch.fx.GraphModule
    inputs: list[Any]
    user: dict[str, Any]
    region: str | None
    own: UserSettings
    started: Callable[[str, Sequence[Any]], None]
    found: Lookup
    choices: Choices


class Lowering(contextlib.AbstractContextManager["Lowering"]):
    """Observes Inductor while the block runs.  `device` is `cpu` or `sim:NAME`; a simulation has to be active then.

    `timeline` is told how long graphs run op by op, and what reading facts costs; `caches` is what is known of the
    user's own caches; graphs that lie on the `shelf` are not lowered again.
    """

    def __init__(
        self,
        user_code: Ownership,
        device: str,
        depth: Depth,
        backward: Backward = Backward.ALWAYS,
        timeline: Timeline | None = None,
        caches: UsersCaches | None = None,
        shelf: Shelf | None = None,
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
        self._reuse = Reuse(shelf or Shelf(None), self._circumstances(device, users), self._kind_of, self._simulation)
        self._troubled = troubles.Notes()
        self._graphs: list[LoweredGraph] = []
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
        self._stack.enter_context(self._troubled)
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
            lowerings=self._reuse.outcomes(),
            caches=(*self._caches.facts(), *self._program_caches.facts(kernels)),
            cache_keys=self._caches.keys(),
            passes=tuple(fact for graph in self._graphs for fact in graph.passes.facts()),
            fx_graphs=tuple(told for graph in self._graphs for told in graph.stages.graphs),
            saved=tuple(kept for graph in self._graphs for kept in graph.stages.saved),
            recomputed=tuple(again for graph in self._graphs for again in graph.stages.recomputed),
            findings=(
                *self._errors,
                *(found for graph in self._graphs for found in graph.signatures.findings(graph.verdict.begins)),
                *library_findings(fallback for graph in self._graphs for fallback in graph.fallbacks),
                *user_kernel_findings(self._graphs),
                *cudagraphs.findings(verdicts),
                *(found for graph in self._graphs for found in graph.backward.findings(graph.id, graph.verdict.begins)),
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
            options = {**backend.config, **(config_patches or {})}
            job = self._begin(model, list(inputs), options, getattr(backend, "name", None))
            graph, entry = job.graph, job.found.entry
            with self._timeline.phase(OURS):
                kept = copied(model) if entry is None else model  # Inductor changes the graph it is given
                runner = self._runner(kept)
            if entry is not None:
                self._tell_again(job, entry)
            else:
                self._lower(job)

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

    def _note_eager(self, graph: LoweredGraph, kept: torch.fx.GraphModule, args: Sequence[Any]) -> None:
        """At its first run, what the graph would dispatch without compilation."""
        if self._simulation is not None and graph.eager is None:
            with self._timeline.phase(OURS):
                graph.eager = self._simulation.eager_run(kept, args)

    def _begin(
        self, model: torch.fx.GraphModule, inputs: list[Any], options: dict[str, Any], region: str | None
    ) -> _Job:
        """Take in a captured graph, and see whether it was lowered before."""
        user = settings(options)
        graph_id, attempt = compat.compile_id()
        # Dynamo began anew: what an earlier attempt at the same graph generated is not part of the program.
        self._graphs = [g for g in self._graphs if g.id != graph_id or g.attempt == attempt]
        names = tuple(node.name for node in model.graph.nodes if node.op == "placeholder")
        stages = GraphStages(graph_id, self._places, self._nodes_to_tell, lambda: self._reading(graph_id))
        stages.captured(model)
        graph = LoweredGraph(
            graph_id,
            attempt,
            first=sum(len(other.groups) for other in self._graphs if other.id == graph_id),
            verdict=cudagraphs.Verdict(self._beginning(model), _asks_for_cudagraphs(user), self._places),
            signatures=Signatures(names),
            backward=BackwardPasses(self._backward),
            passes=PassWatch(graph_id, self._places, self._tidying.take(graph_id, attempt)),
            stages=stages,
        )
        own = users_settings(options)
        with self._timeline.phase(OURS):
            found = self._reuse.look_up(model, inputs, options, region, self._nodes_to_tell.nodes)
        started = self._program_caches.compiling(graph_id, attempt, {**own.everything, **options})
        return _Job(graph, model, inputs, user, region, own, started, found, Choices(self._replay))

    def _tell_again(self, job: _Job, entry: Entry) -> None:
        """Take the facts of a graph that an earlier run has lowered."""
        graph = job.graph
        with self._reading(graph.id), self._timeline.phase(UNCHANGED, graph.id):
            told_again(entry, graph, identity.take_aot_number())
            self._caches.asked_again(graph.id, graph.attempt, job.own, questions_of(entry))
            self._program_caches.built_before(graph.id, entry.libraries)
            if self._simulation is not None:
                for note in entry.notes:
                    self._simulation.note_again(note.topic, note.text, note.place, note.subject)
                for decision in entry.decisions:
                    self._simulation.decide_again(decision)
        self._reuse.unchanged(graph.id)
        self._done(job)

    def _lower(self, job: _Job) -> None:
        """Compile one captured graph in record mode and keep what came of it."""
        graph = job.graph
        before, allowance = graph.passes.facts(), self._nodes_to_tell.nodes
        problems = len(self._problems)
        recording = Recording(lambda noted: self._keep(graph, noted, job.choices))
        try:
            with contextlib.ExitStack() as stack:
                questions = stack.enter_context(self._caches.watching(graph.id, graph.attempt, job.own))
                watched = stack.enter_context(self._reuse.watching())
                stack.enter_context(record_mode(job.choices, job.started))
                stack.enter_context(recording.watching())
                stack.enter_context(graph.passes.watching())
                stack.enter_context(graph.stages.watching())
                stack.enter_context(graph.verdict.deciding())
                stack.enter_context(graph.backward.deciding())
                if self._simulation:
                    stack.enter_context(self._simulation.compiling())
                compat.compile_fx(job.model, job.inputs, job.user, job.region)
        except kept_by_dynamo():
            raise
        except Exception as error:  # whatever Inductor raises would reach the user as a failed compilation
            if (skip := skip_behind(error)) is not None:
                raise skip from None
            self._failed(job, error, recording)
            return
        self._done(job)
        with self._reading(graph.id):
            troubled = len(self._problems) > problems or self._troubled.told()
            why = watched.troubles[0] if watched.troubles else "not everything was read of it" if troubled else None
            libraries = self._program_caches.libraries(graph.id)
            around = Around(before, questions, libraries, watched, allowance, self._nodes_to_tell.nodes)
            self._reuse.lowered(job.found, graph, why, around)

    def _done(self, job: _Job) -> None:
        """The facts of a graph are complete."""
        graph = job.graph
        if self._simulation is not None:
            with self._reading(graph.id):
                graph.decisions += card_decisions.of_graph(graph.id, job.own.everything, graph.verdict.begins)
                graph.decisions += card_decisions.of_kernels(graph.kernels, self._replay)
        self._graphs.append(graph)

    def _failed(self, job: _Job, error: Exception, recording: Recording) -> None:
        """Inductor, or one of our hooks in it, raised."""
        graph = job.graph
        _LOG.info("Inductor failed on graph %s", graph.id, exc_info=error)
        if is_ours(error):
            self._problems.append(own_failure(error, graph.id))
            return
        begins = graph.verdict.begins
        overwritten = overwritten_finding(error, job.model.graph, self._places, begins)
        self._errors.append(overwritten or error_finding(error, recording.failed_node, self._places, begins))

    def _circumstances(self, device: str, users: UsersCaches) -> tuple[str, ...]:
        """What the facts of all graphs of this run depend on, besides what a graph and its process are."""
        simulated = self._simulation.device if self._simulation is not None else None
        return device, repr(simulated), self._replay.identity, self._backward.value, users.identity.value

    def _kind_of(self, file: str) -> str:
        return "user" if self._user_code.is_user(file) else self._places.kind_of_library(file)

    def _keep(self, graph: LoweredGraph, noted: Compilation, choices: Choices) -> None:
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

    def _read(self, graph: LoweredGraph, noted: Compilation, choices: Choices) -> None:
        """Turn what was noted into report types."""
        phase = Phase.BACKWARD if noted.graph.is_backward else Phase.FORWARD
        sources = [source_of(noted, call) for call in noted.calls]
        groups = build_groups(noted, graph.id, graph.first + len(graph.groups), self._places, sources)
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
        graph.verdict.cut(noted.partitions)
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


def _graph_call(graph: LoweredGraph) -> GraphCall:
    eager = graph.eager or EagerRun(None)
    return GraphCall(graph.id, graph.in_first_call, eager.forward, eager.backward, eager.missing, eager.branches)


def _asks_for_cudagraphs(user: dict[str, Any]) -> bool:
    return bool(user.get("triton.cudagraphs", compat.inductor_config().triton.cudagraphs))


def _simulation() -> Simulation:
    """The simulation of this process.  Raises RuntimeError when none was started."""
    from inductoscope.compiler import simgpu

    active = simgpu.active()
    if active is None:
        raise RuntimeError("lowering for a simulated device needs an active simulation")
    simulation: Simulation = active
    return simulation
