"""One run from start to end: prepare, drive under observation, assemble or measure, and tell.

The order of things stands here and nowhere else; each step knows only its own.  Everything that the user's program does
wrong comes up as `RunFailedError` and ends as `RunFailed`, with what was known by then.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from inductoscope.compiler import (
    assembling,
    device_findings,
    failures,
    loader,
    memory,
    merge,
    placement,
    probing,
    resolve,
    what_if,
)
from inductoscope.compiler.capture import Capture, Program
from inductoscope.compiler.card.replay import Replay
from inductoscope.compiler.compat import dynamo, troubles, versions
from inductoscope.compiler.compat.settings import compiling_is_off
from inductoscope.compiler.drive import CallLog, drive
from inductoscope.compiler.failures import RunFailedError
from inductoscope.compiler.inputs import Exercise
from inductoscope.compiler.lower import Backward, Depth, Lowering
from inductoscope.compiler.lower.reuse import Shelf
from inductoscope.compiler.merge import Facts
from inductoscope.compiler.placement import Placement
from inductoscope.compiler.predict.whole import GraphCall
from inductoscope.compiler.preparation import Prepared, first_call_of, prepare
from inductoscope.compiler.teller import Send, Teller
from inductoscope.compiler.timeline import OURS, Timeline
from inductoscope.compiler.usercode import UserCode
from inductoscope.protocol.messages import Errand, Failure, Run, RunDone, RunFailed
from inductoscope.protocol.own_devices import OwnDevice
from inductoscope.protocol.recording import Recording
from inductoscope.protocol.report import Rung, Status, TargetReport


def run(request: Run, send: Send) -> None:
    """Do `request`; the last message sent is `RunDone` or `RunFailed`."""
    teller = Teller(request.run_id, send)
    user_code = UserCode(also=(request.target.file,))
    climb = _Climb(request, teller, user_code)
    try:
        report = climb.report()
        with teller.timeline.phase(OURS):
            files = loader.closure(user_code.is_user)
    except RunFailedError as error:
        send(RunFailed(request.run_id, climb.failure(error), climb.known, loader.closure(user_code.is_user)))
    except BaseException as error:
        failure = failures.escaped(error, request.target.name, user_code.is_user)
        if failure is None:
            raise
        send(RunFailed(request.run_id, failure, climb.known, loader.closure(user_code.is_user)))
    else:
        timed = _timed(report, teller.timeline)
        send(RunDone(request.run_id, timed, files, climb.memory, climb.card, climb.decisions))


class _Climb:
    """The steps of one run; `known` is the report so far, in case that it fails; `memory` is for the next run.

    `card` and `decisions` are what the errands of these names bring.
    """

    def __init__(self, request: Run, teller: Teller, user_code: UserCode) -> None:
        self._request = request
        self._teller = teller
        self._user_code = user_code
        self.known: TargetReport | None = None
        self.memory = request.memory
        self.card: OwnDevice | None = None
        self.decisions: Recording | None = None
        self.shelf = Shelf(Path(request.reuse.store) if request.reuse.store else None, request.reuse.store_bytes)
        self._graph_calls: tuple[GraphCall, ...] = ()

    def report(self) -> TargetReport:
        """Do what the run is for."""
        if self._request.errand is not Errand.REPORT:
            return self.record()
        return self.measure() if self._request.rung is Rung.MEASURE else self.observe()

    def failure(self, error: RunFailedError) -> Failure:
        """What the server is told: where a device is simulated, whether that may be at fault."""
        simulates = self._request.device.startswith("sim:")
        below = simulates and failures.came_from_below(error, self._user_code.is_user)
        return replace(error.failure, simulation=below)

    def record(self) -> TargetReport:
        """Read the card of this machine, or what torch decides on it for the target."""
        from inductoscope.compiler.card import errands

        request = self._request
        errands.check_card()
        if request.errand is Errand.FIGURES:
            self.card = errands.figures()
        else:
            prepared = prepare(request, self._placement(), self._teller, self._user_code.is_user)
            with self._teller.phase("record", Rung.MEASURE, f"recording what torch decides for {request.target.name}"):
                self.decisions = errands.decisions(prepared, request.target, self._user_code.is_user)
        target = request.target
        return TargetReport(target.file, target.name, target.line, request.device, Rung.MEASURE, Status.COMPILED)

    def measure(self) -> TargetReport:
        """Time the program, with nothing in its way."""
        # These bring torch's benchmark and with it setuptools.
        from inductoscope.compiler import kernel_facts, measuring

        where = self._placement()
        prepared = prepare(self._request, where, self._teller, self._user_code.is_user)
        report = measuring.measured(self._request, prepared, where, self._teller, self._user_code)
        if report.benchmark is None or report.benchmark.kernels is None:
            return report
        self.known = report
        program = measuring.compiled_as_asked(prepared, self._request, self._user_code)
        with self._teller.phase("kernels", Rung.MEASURE, "looking up what is known of the kernels"):
            return kernel_facts.added(report, lambda: self._drive(first_call_of(prepared), program, where))

    def observe(self) -> TargetReport:
        """Capture, lower and, where it is asked for, assemble."""
        where = self._placement()
        prepared = prepare(self._request, where, self._teller, self._user_code.is_user)
        is_user = self._user_code.is_user
        program = resolve.compile_program(prepared.placed.program, prepared.conventions, self._request.target, is_user)
        report = self._drive(prepared, program, where)
        if where.simulated is not None and report.rung.reaches(Rung.LOWER):
            with self._teller.timeline.phase("predict"):
                report = assembling.predicted(report, where.simulated, self._graph_calls)
        self._tell(report)
        assembles = self._request.rung.reaches(Rung.ASSEMBLE) and report.rung.reaches(Rung.LOWER)
        if where.simulated is not None and assembles:
            replay = where.simulation.replay if where.simulation is not None else Replay()
            report = assembling.assembled(report, where.simulated, self._teller, self._request.assembling, replay)
            report = assembling.predicted(report, where.simulated, self._graph_calls)  # now spills are known
            self._tell(report)
        return self._probed(report, prepared, program, where)

    def _placement(self) -> Placement:
        with self._teller.timeline.phase("device"):
            return placement.prepare(self._request.device, self._user_code.is_user, self._request.own)

    def _tell(self, report: TargetReport) -> None:
        self.known = _timed(report, self._teller.timeline)
        with self._teller.timeline.phase(OURS):
            self._teller.rung_done(self.known)
            self.shelf.write()

    def _drive(self, prepared: Prepared, program: Any, where: Placement) -> TargetReport:
        """Make the calls once with every observer watching."""
        request, target, is_user = self._request, self._request.target, self._user_code.is_user
        timeline = self._teller.timeline
        lowers = request.rung.reaches(Rung.LOWER) and where.has_kernels
        depth = Depth.KERNELS if lowers else Depth.GRAPHS
        # A file that names its backend speaks for the whole program; elsewhere our calls are only a sample of it.
        named = prepared.conventions.backend is not None
        extent = Program.WHOLE if named else Program.SAMPLE
        capture = Capture(self._user_code, target, self._teller.finding, extent, timeline)
        guards = _backend_guards(prepared)
        trains = isinstance(prepared.placed.source, Exercise)  # calls that are ours never ask for a backward pass
        backward = Backward.ALWAYS if trains else Backward.UNLESS_LARGE
        users = memory.users_caches(request)
        lowering = Lowering(self._user_code, request.device, depth, backward, timeline, users, self.shelf)

        def begin_call(index: int) -> None:
            capture.begin_call(index)
            lowering.begin_call(index)

        log = CallLog(prepared.placed.source.origin, begin_call)
        troubled = troubles.Notes()
        try:
            with self._teller.phase("drive", Rung.LOWER, f"running {target.name}"), troubled, capture, lowering, guards:
                error = drive(prepared.placed, program, log, target, is_user)
                if error is not None:
                    capture.compile_error(error)
        finally:
            with timeline.phase(OURS):
                facts = Facts(
                    capture=capture.facts(),
                    lower=lowering.facts(),
                    inputs=tuple(log.sets),
                    compiling_is_off=compiling_is_off(),
                    notes=(*_of_version(), *filter(None, (prepared.placed.note,)), *troubled.told()),
                )
                reached = Rung.LOWER if depth is Depth.KERNELS else Rung.CAPTURE
                report = merge.report(target, request.device, reached, _with_device(facts, where), is_user)
                self.memory = memory.for_the_next(request, users, facts.lower)
                self._graph_calls = facts.lower.graph_calls
            self.known = _timed(report, timeline)
        if request.what_if:
            with timeline.phase("what if"):
                question = what_if.Asked(prepared, program, where, self.known)
                self.known = replace(self.known, what_if=what_if.ask(request.what_if, question, self._user_code))
        return self.known

    def _probed(self, report: TargetReport, prepared: Prepared, program: Any, where: Placement) -> TargetReport:
        """The report with what other sizes would do, which is tried last so that nothing waits for it."""
        request, placed = self._request, prepared.placed
        call = probing.call_to_probe(request, report, placed.source, where)
        if call is None:
            return report

        @contextlib.contextmanager
        def capturing() -> Iterator[None]:
            with Lowering(self._user_code, request.device, Depth.GRAPHS), _backend_guards(prepared):
                yield

        signature = placed.program.signature()
        subject = probing.Subject(request.target, program, call, signature, self._user_code, capturing)
        with self._teller.phase("other sizes", Rung.CAPTURE, f"trying other sizes for {request.target.name}"):
            extent = probing.affordable(self._teller.timeline.phases(), request.probe_seconds)
            found = probing.probe(subject, request.probe_seconds, extent)
        notes = report.notes if found.note is None else (*report.notes, found.note)
        return replace(report, probes=found.probes, untried=found.untried, notes=notes)


def _backend_guards(prepared: Prepared) -> contextlib.AbstractContextManager[None]:
    """Where neither the file nor the program itself asks for Inductor, its guards are not the program's."""
    asked = prepared.conventions.backend is not None or prepared.placed.program.is_compiled
    return contextlib.nullcontext() if asked else dynamo.backend_guards_left_out()


def _of_version() -> tuple[str, ...]:
    """What the version of torch makes uncertain."""
    warning = versions.newer_than_known(torch.__version__)
    return () if warning is None else (f"{warning}.",)


def _timed(report: TargetReport, timeline: Timeline) -> TargetReport:
    """The report with the phases of the run so far and how long it took altogether."""
    return replace(report, phases=timeline.phases(), run_ms=timeline.elapsed_ms())


def _with_device(facts: Facts, where: Placement) -> Facts:
    """`facts` with what the simulated device has to tell, if there is one."""
    if where.simulation is None:
        return facts
    syncs = tuple(map(device_findings.with_expression, where.simulation.syncs()))
    notes = dict.fromkeys((*facts.notes, *where.simulation.sentences()))
    return replace(
        facts,
        syncs=syncs,
        launches=where.simulation.launches(),
        decisions=where.simulation.decisions(),
        device_findings=device_findings.of_syncs(syncs),
        notes=tuple(notes),
    )
