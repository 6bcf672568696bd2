"""The observer that the driver holds open while the program runs."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable
from types import TracebackType
from typing import TypeVar

from inductoscope.compiler.capture import phases, specialized
from inductoscope.compiler.capture.breaks import BreakLog
from inductoscope.compiler.capture.caches import Program
from inductoscope.compiler.capture.errors import error_finding, suppressed_finding
from inductoscope.compiler.capture.facts import CaptureFacts
from inductoscope.compiler.capture.findings import Announcer
from inductoscope.compiler.capture.graphs import PIECE_RECORD, GraphLog
from inductoscope.compiler.capture.guard_facts import GuardLog
from inductoscope.compiler.capture.phases import PhaseLog
from inductoscope.compiler.capture.recompiles import RecompileLog
from inductoscope.compiler.capture.skipped import SkipLog
from inductoscope.compiler.capture.specialized import SpecializationLog
from inductoscope.compiler.capture.tracing_warnings import WarningLog
from inductoscope.compiler.capture.values import ValueLog
from inductoscope.compiler.compat import (
    dynamo,
    dynamo_breaks,
    dynamo_guards,
    dynamo_stacks,
    dynamo_trace,
    dynamo_values,
    own_frames,
    phase_events,
    skips,
    troubles,
)
from inductoscope.compiler.compat.errors import is_compile_error
from inductoscope.compiler.timeline import OURS, Timeline
from inductoscope.compiler.usercode import UserCode
from inductoscope.protocol.messages import Target
from inductoscope.protocol.report import Finding

logger = logging.getLogger(__name__)

_Event = TypeVar("_Event")


class Capture(contextlib.AbstractContextManager["Capture"]):
    """Collects what Dynamo does while the block runs; `on_finding` gets breaks, recompiles and errors as they happen.

    Findings that depend on how the run ends stand only in `facts().findings`.  `program` says whether the calls are all
    that the user's program does; some facts hold only then.  `timeline` is told how long torch's phases take.
    """

    def __init__(
        self,
        user_code: UserCode,
        target: Target,
        on_finding: Callable[[Finding], None],
        program: Program = Program.SAMPLE,
        timeline: Timeline | None = None,
    ) -> None:
        self._user_code = user_code
        self._target = target
        self._announcer = Announcer(on_finding)
        self._breaks = BreakLog(user_code, target)
        self._recompiles = RecompileLog(user_code, target)
        self._graphs = GraphLog(user_code, target, program)
        self._skips = SkipLog(user_code, target)
        self._specializations = SpecializationLog(user_code)
        self._warnings = WarningLog(user_code)
        self._values = ValueLog(user_code)
        self._guards = GuardLog(user_code)
        self._phases = PhaseLog()
        self._timeline = timeline or Timeline()
        self._traced = False
        self._breaks_are_text = not dynamo.LOG_BREAK.exists()
        self._errors: list[Finding] = []
        self._failures: list[Finding] = []
        self._input_set: int | None = None
        self._open = contextlib.ExitStack()

    def __enter__(self) -> Capture:
        own_frames.hide_frames_of("inductoscope.compiler")
        with contextlib.ExitStack() as stack:
            stack.enter_context(phase_events.told_to(self._timeline))
            stack.enter_context(dynamo_trace.trace_records(self._on_record))
            stack.enter_context(dynamo_trace.recompile_limits(self._on_limit))
            stack.enter_context(dynamo.graph_breaks(self._ours(self._on_break)))
            stack.enter_context(dynamo.graphs(self._ours(self._on_graph), self._graphs.give_up))
            stack.enter_context(dynamo_values.stores(self._values.store))
            stack.enter_context(dynamo_guards.compiled_guards(self._ours(self._guards.meet)))
            stack.enter_context(dynamo.backward_passes(self._graphs.meet_backward))
            stack.enter_context(dynamo.guard_failures(self._recompiles.fails))
            stack.enter_context(skips.skipped_frames(self._skips.meet))
            stack.enter_context(dynamo.tracing_warnings(self._warnings.meet))
            self._open = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()
        self._tell_silence()

    def begin_call(self, index: int) -> None:
        """Say that the call with input set `index` (from 0) comes next."""
        self._input_set = index

    def compile_error(self, error: BaseException) -> Finding | None:
        """Take in an exception that the program raised; None, and nothing noted, unless compiling raised it."""
        if not is_compile_error(error):
            return None
        if dynamo_breaks.is_graph_break(error):
            self._breaks.forbid(error)
        found = error_finding(error, self._user_code, self._recompiles.compiling())
        self._errors.append(found)
        self._announcer.tell(found, found)
        return found

    def facts(self) -> CaptureFacts:
        """Everything known by now."""
        specializations = self._specializations.specializations()
        return CaptureFacts(
            graphs=self._graphs.graphs(),
            fx_graphs=self._graphs.fx_graphs(),
            breaks=self._breaks.breaks(),
            recompiles=self._recompiles.recompiles(),
            recompile_limit=self._recompiles.limit(),
            specializations=specializations,
            values=self._values.values(),
            guards=self._guards.guards(),
            dimensions=self._guards.dimensions(specializations),
            skipped=self._skips.skipped(),
            caches=self._graphs.caches(),
            findings=self._findings(),
        )

    def _findings(self) -> tuple[Finding, ...]:
        # torch also writes down the errors that end the program; only those that did not are told as suppressed.
        failed = (*(self._errors or self._failures), *self._breaks.findings())
        explained = bool(failed or self._graphs.graphs())
        return (
            *failed,
            *self._recompiles.findings(),
            *self._specializations.findings(failed={(one.file, one.line) for one in self._errors}),
            *self._graphs.findings(self._phases.seconds),
            *self._warnings.findings(broken=self._breaks.lines()),
            *(() if explained else self._skips.nothing_compiled()),
        )

    def _tell_silence(self) -> None:
        """Say what torch cannot have been silent about: a change in torch may have made an observer deaf."""
        if not self._graphs.graphs():
            return
        if not self._traced:
            troubles.silent(logger, "its compilations (in its structured trace)")
        if not (self._guards.guards() or self._errors or self._failures):
            troubles.silent(logger, "guards")

    def _ours(self, callback: Callable[[_Event], None]) -> Callable[[_Event], None]:
        """A callback whose time is not torch's."""

        def timed(event: _Event) -> None:
            with self._timeline.phase(OURS):
                callback(event)

        return timed

    def _on_record(self, record: dynamo_trace.Record) -> None:
        compile_id = record.compile_id
        if compile_id is None:
            return
        self._traced = True
        if record.name == "recompile_reasons":
            key = self._recompiles.meet(compile_id, record.payload, self._input_set)
            if key:
                self._announcer.tell(key, self._recompiles.finding(key))
        elif record.name == "dynamo_start":
            self._recompiles.compiles(compile_id, dynamo_trace.started_function(record))
        elif record.name == "dynamo_error":
            self._on_failure(dynamo_trace.failure())
        elif record.name == "dynamo_graph_break_reason" and self._breaks_are_text:
            if event := dynamo.told_break(record):
                self._on_break(event)
        elif record.name == PIECE_RECORD:
            self._graphs.meet_piece(compile_id)
        elif record.name == specialized.RECORD:
            self._specializations.meet(record)
        elif record.name == phases.RECORD:
            self._phases.meet(record)

    def _on_graph(self, event: dynamo.GraphEvent) -> None:
        self._graphs.meet(event)
        self._values.meet(event)

    def _on_failure(self, error: BaseException | None) -> None:
        if error is not None and not dynamo_breaks.is_graph_break(error):
            self._failures.append(suppressed_finding(error, self._user_code, self._recompiles.compiling()))

    def _on_break(self, event: dynamo.BreakEvent) -> None:
        key = self._breaks.meet(event)
        self._announcer.tell(key, self._breaks.finding(key))

    def _on_limit(self, name: str, value: int, function: dynamo_stacks.CodePlace) -> None:
        limit = self._recompiles.meet_limit(name, value, function)
        self._announcer.tell(limit, self._recompiles.limit_finding())
