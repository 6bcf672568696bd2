"""The rung `measure`: hand the program over to the benchmark, and report what it says.

Measures the given calls one by one, each compiled anew.  Nothing observes meanwhile; what is known of the kernels
otherwise is looked up afterwards, by a run that only lowers the same program.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import torch

from inductoscope.compiler import inputs, placement, resolve
from inductoscope.compiler.bench import Subject, measure
from inductoscope.compiler.bench.departure import Search
from inductoscope.compiler.bench.verdicts import verdicts
from inductoscope.compiler.compat import compiled
from inductoscope.compiler.conventions import Conventions
from inductoscope.compiler.inputs import GivenCalls
from inductoscope.compiler.lower.places import Places
from inductoscope.compiler.marks import finding_at
from inductoscope.compiler.placement import Placed, Placement
from inductoscope.compiler.preparation import Prepared
from inductoscope.compiler.resolve import Program
from inductoscope.compiler.teller import Teller
from inductoscope.compiler.usercode import UserCode
from inductoscope.protocol.bench import Detail, Locate
from inductoscope.protocol.messages import Run, Target
from inductoscope.protocol.report import Agreement, Benchmark, InputSet, Place, Rung, Status, TargetReport


def measured(request: Run, prepared: Prepared, where: Placement, teller: Teller, user_code: UserCode) -> TargetReport:
    """The report of a benchmark on the real device `where`."""
    target, source = request.target, prepared.placed.source
    refusal = _refusal(target, prepared, where)
    if refusal is not None or not isinstance(source, GivenCalls):
        return _report(request, (_refused(request, refusal or ""),))
    count = min(len(source.calls), max(1, request.bench.input_sets))
    sets = tuple(InputSet(source.origin, inputs.describe_call(call.args, call.kwargs)) for call in source.calls)
    benchmarks: list[Benchmark] = []
    # The first set comes last: only it is looked at kernel by kernel, which slows down what the process launches later.
    for index in reversed(range(count)):
        which = f", input set {index + 1} of {count}" if count > 1 else ""
        asked = request if index == 0 else replace(request, bench=replace(request.bench, detail=Detail.BARE))
        with teller.phase("measure", Rung.MEASURE, f"measuring {target.name}{which}"):
            found = _one(asked, _Maker(prepared, where, asked, user_code, index), teller, which)
        benchmarks.insert(0, replace(found, inputs=sets[index].args))
    return _report(request, _only_on_its_own_sizes(benchmarks), sets[:count])


def compiled_as_asked(prepared: Prepared, request: Run, user_code: UserCode) -> Any:
    """The prepared program itself, compiled as the benchmark compiles its copies, but without autotuning again."""
    program, mode = prepared.placed.program, request.bench.mode
    if mode is not None and mode.startswith("max-autotune"):
        mode = "default"
    asked = replace(request, bench=replace(request.bench, mode=mode))
    if mode is not None and program.is_compiled:
        return torch.compile(compiled.original(program.obj), mode=mode)
    return resolve.compile_program(program, _asked(prepared, asked), request.target, user_code.is_user)


def _one(request: Run, maker: _Maker, teller: Teller, which: str) -> Benchmark:
    def progress(doing: str) -> None:
        teller.progress(Rung.MEASURE, doing + which)

    subject = maker.subject()
    found = measure(subject, maker.device, request.bench_seconds, progress, request.bench)
    differs = found.numerics is not None and found.numerics.agreement is Agreement.DIFFERS
    if not differs or request.bench.locate is Locate.NEVER:
        return found
    return replace(found, departure=Search(subject, maker.compile_graph, maker.place_of).first(progress))


def _refusal(target: Target, prepared: Prepared, where: Placement) -> str | None:
    """Why this program cannot be measured there."""
    program = prepared.placed.program
    if where.simulation is not None:
        return "A simulated GPU computes nothing: measure on cpu or cuda."
    if not isinstance(prepared.placed.source, GivenCalls):
        return f"{target.name} is called by exercise(), which no benchmark can repeat: add get_inputs() to measure it."
    if program.is_compiled and not compiled.repeatable(program.obj):
        return f"{target.name} compiles itself in a way that cannot be repeated on a copy: use torch.compile(module)."
    return None


def _asked(prepared: Prepared, request: Run) -> Conventions:
    """How to compile what does not compile itself; a mode takes the place of options, which torch does not mix."""
    said, mode = prepared.conventions, request.bench.mode
    if mode is None:
        return said
    others = {name: value for name, value in said.compile_kwargs.items() if name != "options"}
    return replace(said, compile_kwargs={**others, "mode": mode})


class _Maker:
    """Makes the program and the inputs of one call anew, as often as the benchmark asks for."""

    def __init__(self, prepared: Prepared, where: Placement, request: Run, user_code: UserCode, index: int) -> None:
        self._prepared = prepared
        self._where = where
        self._request = request
        self._user_code = user_code
        self._index = index
        self.device = where.choice.text
        self._places = Places(user_code)

    def subject(self) -> Subject:
        """What the benchmark needs."""
        return Subject(self._eager, self._compiled, self._inputs, self._request.bench.passes)

    def compile_graph(self, graph: Any) -> Callable[..., Any]:
        """A captured graph, compiled with the arguments that the program is compiled with, as far as they are known."""
        if self._prepared.placed.program.is_compiled:
            return torch.compile(graph, mode=self._request.bench.mode)
        said = _asked(self._prepared, self._request)
        kwargs = {name: value for name, value in said.compile_kwargs.items() if name != "fullgraph"}
        program, target = Program(graph, self._request.target.name), self._request.target
        return resolve.compile_program(program, replace(said, compile_kwargs=kwargs), target, self._user_code.is_user)

    def place_of(self, node: torch.fx.Node) -> tuple[str, int] | None:
        """The user's line of a node of a captured graph."""
        place = self._places.of(node)
        return (place.file, place.line) if place is not None else None

    def _placed(self) -> Placed:
        said, target, is_user = self._prepared.conventions, self._request.target, self._user_code.is_user
        program = resolve.resolve(self._prepared.module, target, said, is_user)
        return placement.place(program, inputs.find(target, program, said, is_user), said, self._where)

    def _eager(self) -> Callable[..., Any]:
        obj = self._placed().program.obj
        if compiled.is_compiled(obj):
            return compiled.eager_twin(obj)
        return copy.deepcopy(obj) if isinstance(obj, torch.nn.Module) else obj

    def _compiled(self, twin: Any) -> Callable[..., Any]:
        obj, mode = self._prepared.placed.program.obj, self._request.bench.mode
        if compiled.is_compiled(obj):
            return torch.compile(twin, mode=mode) if mode is not None else compiled.compiled_like(obj, twin)
        program = Program(twin, self._request.target.name)
        said = _asked(self._prepared, self._request)
        return resolve.compile_program(program, said, self._request.target, self._user_code.is_user)

    def _inputs(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        source = self._placed().source
        assert isinstance(source, GivenCalls)  # it was at the first look
        call = source.calls[self._index]
        return call.args, call.kwargs


def _only_on_its_own_sizes(benchmarks: list[Benchmark]) -> tuple[Benchmark, ...]:
    """A program that runs with its first inputs and with no others may be made for those sizes: say so."""
    if not benchmarks or benchmarks[0].compiled is None:
        return tuple(benchmarks)
    first = ", ".join(benchmarks[0].inputs)
    return (benchmarks[0], *(_with_hint(one, first) for one in benchmarks[1:]))


def _with_hint(benchmark: Benchmark, first: str) -> Benchmark:
    if benchmark.refused is None or benchmark.compiled is not None or "eager program" not in benchmark.refused:
        return benchmark
    hint = f"It runs with the first inputs ({first}), so it may be written for those sizes alone."
    return replace(benchmark, refused=f"With ({', '.join(benchmark.inputs)}): {benchmark.refused} {hint}")


def _refused(request: Run, why: str) -> Benchmark:
    return Benchmark(
        where=request.device, method="not measured", refused=why, mode=request.bench.mode, passes=request.bench.passes
    )


def _report(request: Run, benchmarks: tuple[Benchmark, ...], sets: tuple[InputSet, ...] = ()) -> TargetReport:
    target, benchmark = request.target, benchmarks[0]
    place = Place(target.file, target.line, target.name)
    refused = benchmark.refused is not None
    return TargetReport(
        file=target.file,
        name=target.name,
        line=target.line,
        device=request.device,
        rung=Rung.MEASURE,
        status=Status.NOT_RUN if refused else _status(benchmark),
        message=benchmark.refused,
        inputs=sets,
        findings=tuple(finding_at(one.code, place, one.message, Rung.MEASURE) for one in _verdicts(benchmarks)),
        benchmark=benchmark,
        benchmarks=benchmarks[1:],
    )


def _verdicts(benchmarks: tuple[Benchmark, ...]) -> Iterator[Any]:
    """What deserves a finding, the same once."""
    return iter(dict.fromkeys(one for benchmark in benchmarks for one in verdicts(benchmark)))


def _status(benchmark: Benchmark) -> Status:
    return Status.PARTIAL if benchmark.graph_breaks else Status.COMPILED
