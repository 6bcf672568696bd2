"""The rung `measure`: hand the program over to the benchmark, and report what it says.

Measures the first of the given calls.  Nothing observes meanwhile.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch

from inductoscope.compiler import inputs, placement, resolve
from inductoscope.compiler.bench import Subject, measure
from inductoscope.compiler.bench.verdicts import verdicts
from inductoscope.compiler.compat import compiled
from inductoscope.compiler.failures import IsUser
from inductoscope.compiler.inputs import GivenCalls
from inductoscope.compiler.marks import finding_at
from inductoscope.compiler.placement import Placed, Placement
from inductoscope.compiler.preparation import Prepared
from inductoscope.compiler.resolve import Program
from inductoscope.compiler.teller import Teller
from inductoscope.protocol.messages import Run, Target
from inductoscope.protocol.report import Benchmark, InputSet, Place, Rung, Status, TargetReport


def measured(request: Run, prepared: Prepared, where: Placement, teller: Teller, is_user: IsUser) -> TargetReport:
    """The report of a benchmark on the real device `where`."""
    target, source = request.target, prepared.placed.source
    if where.simulation is not None:
        return _report(request, _refused(request, "A simulated GPU computes nothing: measure on cpu or cuda."))
    if not isinstance(source, GivenCalls):
        why = f"{target.name} is called by exercise(), which no benchmark can repeat: add get_inputs() to measure it."
        return _report(request, _refused(request, why))
    program = prepared.placed.program
    if program.is_compiled and not compiled.repeatable(program.obj):
        why = f"{target.name} compiles itself in a way that cannot be repeated on a copy: use torch.compile(module)."
        return _report(request, _refused(request, why))
    call = source.calls[0]
    sets = (InputSet(source.origin, inputs.describe_call(call.args, call.kwargs)),)
    subject = _Maker(prepared, where, target, is_user).subject()

    def progress(doing: str) -> None:
        teller.progress(Rung.MEASURE, doing)

    with teller.phase("measure", Rung.MEASURE, f"measuring {target.name}"):
        benchmark = measure(subject, where.choice.text, request.bench_seconds, progress)
    return _report(request, benchmark, sets)


class _Maker:
    """Makes the program and its inputs anew, as often as the benchmark asks for."""

    def __init__(self, prepared: Prepared, where: Placement, target: Target, is_user: IsUser) -> None:
        self._prepared = prepared
        self._where = where
        self._target = target
        self._is_user = is_user

    def subject(self) -> Subject:
        """What the benchmark needs."""
        return Subject(make_eager=self._eager, compile=self._compiled, make_inputs=self._inputs)

    def _placed(self) -> Placed:
        said, target = self._prepared.conventions, self._target
        program = resolve.resolve(self._prepared.module, target, said, self._is_user)
        return placement.place(program, inputs.find(target, program, said, self._is_user), said, self._where)

    def _eager(self) -> Callable[..., Any]:
        obj = self._placed().program.obj
        if compiled.is_compiled(obj):
            return compiled.eager_twin(obj)
        return copy.deepcopy(obj) if isinstance(obj, torch.nn.Module) else obj

    def _compiled(self, twin: Any) -> Callable[..., Any]:
        obj = self._prepared.placed.program.obj
        if compiled.is_compiled(obj):
            return compiled.compiled_like(obj, twin)
        program = Program(twin, self._target.name)
        return resolve.compile_program(program, self._prepared.conventions, self._target, self._is_user)

    def _inputs(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        source = self._placed().source
        assert isinstance(source, GivenCalls)  # it was at the first look
        return source.calls[0].args, source.calls[0].kwargs


def _refused(request: Run, why: str) -> Benchmark:
    return Benchmark(where=request.device, method="not measured", refused=why)


def _report(request: Run, benchmark: Benchmark, sets: tuple[InputSet, ...] = ()) -> TargetReport:
    target = request.target
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
        findings=tuple(finding_at(one.code, place, one.message, Rung.MEASURE) for one in verdicts(benchmark)),
        benchmark=benchmark,
    )


def _status(benchmark: Benchmark) -> Status:
    return Status.PARTIAL if benchmark.graph_breaks else Status.COMPILED
