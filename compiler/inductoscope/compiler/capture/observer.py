"""The observer that the driver holds open while the program runs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from types import TracebackType

from inductoscope.compiler.capture.breaks import BreakLog
from inductoscope.compiler.capture.errors import error_finding
from inductoscope.compiler.capture.facts import CaptureFacts
from inductoscope.compiler.capture.findings import Announcer, at_line
from inductoscope.compiler.capture.graphs import graph_of
from inductoscope.compiler.capture.recompiles import RecompileLog
from inductoscope.compiler.compat import dynamo
from inductoscope.compiler.compat.errors import is_compile_error
from inductoscope.compiler.usercode import UserCode
from inductoscope.protocol.messages import Target
from inductoscope.protocol.report import Finding, Graph, SkippedFrame


class Capture(contextlib.AbstractContextManager["Capture"]):
    """Collects what Dynamo does while the block runs; `on_finding` gets each finding when it is first known.

    Findings that depend on how the run ends stand only in `facts().findings`.
    """

    def __init__(self, user_code: UserCode, target: Target, on_finding: Callable[[Finding], None]) -> None:
        self._user_code = user_code
        self._target = target
        self._announcer = Announcer(on_finding)
        self._breaks = BreakLog(user_code, target)
        self._recompiles = RecompileLog(user_code, target)
        self._graphs: list[Graph] = []
        self._skipped: dict[SkippedFrame, None] = {}
        self._errors: list[Finding] = []
        self._input_set: int | None = None
        self._open = contextlib.ExitStack()

    def __enter__(self) -> Capture:
        with contextlib.ExitStack() as stack:
            stack.enter_context(dynamo.trace_records(self._on_record))
            stack.enter_context(dynamo.recompile_limits(self._on_limit))
            stack.enter_context(dynamo.graph_breaks(self._on_break))
            stack.enter_context(dynamo.graphs(self._on_graph))
            stack.enter_context(dynamo.guard_failures(self._recompiles.fails))
            stack.enter_context(dynamo.skipped_frames(self._on_skip))
            self._open = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()

    def begin_call(self, index: int) -> None:
        """Say that the call with input set `index` (from 0) comes next."""
        self._input_set = index

    def compile_error(self, error: BaseException) -> Finding | None:
        """Take in an exception that the program raised; None, and nothing noted, unless compiling raised it."""
        if not is_compile_error(error):
            return None
        found = error_finding(error, self._user_code, self._target)
        self._errors.append(found)
        self._announcer.tell(found, found)
        return found

    def facts(self) -> CaptureFacts:
        """Everything known by now."""
        return CaptureFacts(
            graphs=tuple(self._graphs),
            breaks=self._breaks.breaks(),
            recompiles=self._recompiles.recompiles(),
            recompile_limit=self._recompiles.limit(),
            skipped=tuple(self._skipped),
            findings=self._findings(),
        )

    def _findings(self) -> tuple[Finding, ...]:
        found = (*self._errors, *self._breaks.findings(), *self._recompiles.findings())
        return found or self._nothing_compiled()

    def _nothing_compiled(self) -> tuple[Finding, ...]:
        if self._graphs:
            return ()
        reasons = "; ".join(f"{frame.function}: {frame.reason}" for frame in self._skipped)
        message = f"Nothing of {self._target.name} was compiled: {reasons or 'Dynamo met no function of yours'}."
        return (at_line("not-compiled", self._target.file, self._target.line, message),)

    def _on_record(self, record: dynamo.Record) -> None:
        if record.name == "recompile_reasons" and record.compile_id:
            key = self._recompiles.meet(record.compile_id, record.payload, self._input_set)
            if key:
                self._announcer.tell(key, self._recompiles.finding(key))
        elif record.name == "dynamo_start" and record.compile_id and (place := dynamo.started_function(record)):
            self._recompiles.compiles(record.compile_id.partition("/")[0], place)

    def _on_break(self, event: dynamo.BreakEvent) -> None:
        key = self._breaks.meet(event)
        self._announcer.tell(key, self._breaks.finding(key))

    def _on_limit(self, name: str, value: int, function: dynamo.CodePlace) -> None:
        limit = self._recompiles.meet_limit(name, value, function)
        self._announcer.tell(limit, self._recompiles.limit_finding())

    def _on_graph(self, event: dynamo.GraphEvent) -> None:
        self._graphs.append(graph_of(event, self._user_code, self._target))

    def _on_skip(self, event: dynamo.SkipEvent) -> None:
        place = dynamo.code_place(event.code)
        if self._user_code.is_user(place.file):
            self._skipped[SkippedFrame(place.function, place.file, place.line, event.reason)] = None
