"""Dynamo's private parts that capture observes, and nothing else.

Checked by running on torch 2.13; names compared with the sources of 2.11 to 2.15.  Every observer only looks: it calls
the original with the original arguments, and an error of ours never reaches the program.  Where a version lacks one of
the points, its observer stays silent and the structured trace alone tells.  This module knows nothing of reports.
"""

from __future__ import annotations

import contextlib
import inspect
import itertools
import json
import logging
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import torch

from inductoscope.compiler.compat.inductor import Point, replaced
from inductoscope.compiler.usercode import Frame

logger = logging.getLogger(__name__)

_D = "torch._dynamo."
LOG_BREAK = Point(
    _D + "symbolic_convert",
    "InstructionTranslatorBase.log_graph_break",
    "the exception behind a graph break, as an object",
)
CALL_BACKEND = Point(
    _D + "output_graph", "OutputGraph.call_user_compiler", "each graph, just before the backend has it"
)
RECOMPILE_REASONS = Point(
    _D + "convert_frame",
    "get_and_maybe_log_recompilation_reasons",
    "the frame whose guards failed, to read actual values",
)
SKIP = Point(_D + "convert_frame", "add_skip_reason", "frames that were not compiled, and why (2.13)", required=False)
# CPython hands every warning that its filters let through to this function (3.6 to 3.14).  `warnings.showwarning` would
# be the public place, but compiled code that enters `catch_warnings` reads that one, so that Dynamo would guard on it.
SHOW_WARNING = Point("warnings", "_showwarnmsg", "warnings while Dynamo traces")
RUN_BACKWARD = Point("torch.autograd", "_engine_run_backward", "whether the program asks for gradients")

ALL_POINTS: tuple[Point, ...] = (LOG_BREAK, CALL_BACKEND, RECOMPILE_REASONS, SKIP, SHOW_WARNING, RUN_BACKWARD)

_TRACE_LOGGER = "torch.__trace"  # 2.3 and later; torch builds records only while it has a handler
_CONTEXT_KEYS = frozenset(
    ("rank", "frame_id", "frame_compile_id", "attempt", "compiled_autograd_id", "has_payload", "stack", "subgraph_name")
)
_RESUMED = re.compile(r"torch_dynamo_resume_in_(.+)_at_\d+")
_STACK_LINE = re.compile(r'^ *File "(?P<file>.+)", line (?P<line>\d+), in (?P<function>.+)$', re.M)
_REGISTRY = "graph_break_registry.json"  # beside torch/_dynamo/exc.py since 2.8
_BREAK_SITE = "https://meta-pytorch.github.io/compile-graph-break-site/gb/gb{number}.html"  # torch/_dynamo/exc.py


@dataclass(frozen=True)
class CodePlace:
    """The start of a function, or the point where the rest of it resumes after a graph break."""

    file: str
    line: int
    function: str
    resumed: bool = False


@dataclass(frozen=True)
class Record:
    """One record of the structured trace: its key, or the name of an artifact; its fields; its payload.

    `compile_id` is torch's `frame/compile`, None outside of a compilation.
    """

    name: str
    fields: Mapping[str, Any]
    payload: str
    compile_id: str | None
    attempt: int


@dataclass(frozen=True)
class BreakEvent:
    """A graph break at the moment Dynamo decides what to do about it.

    `reason` is torch's text whose first words tell what follows; `message` is that of the break itself.  `stack` has
    the calls above the compiled function and the traced ones, outermost first.  `function` is the compiled function,
    which may have been about to inline another.
    """

    reason: str
    message: str
    stack: tuple[Frame, ...]
    function: str
    compile_id: str


@dataclass(frozen=True)
class GraphEvent:
    """A graph that goes to the backend; `inductor` says that this is torch.compile's own."""

    module: torch.fx.GraphModule
    code: CodeType | None
    compile_id: str
    inductor: bool


@dataclass(frozen=True)
class SkipEvent:
    """A frame that Dynamo left alone."""

    code: CodeType
    reason: str


@dataclass(frozen=True)
class WarningEvent:
    """A Python warning that came up while Dynamo traced user code; `stack` is where tracing stood."""

    category: type[Warning]
    text: str
    stack: tuple[Frame, ...]
    compile_id: str


@dataclass(frozen=True)
class FailedFrame:
    """The variables that guards were checked against when a compiled function could not be used again."""

    code: CodeType
    f_locals: Mapping[str, Any] = field(repr=False)
    f_globals: Mapping[str, Any] = field(repr=False)


# Observers


@contextlib.contextmanager
def trace_records(callback: Callable[[Record], None]) -> Iterator[None]:
    """Hand every record of the structured trace to `callback` while the block runs."""
    handler = _TraceHandler(callback)
    trace = logging.getLogger(_TRACE_LOGGER)
    trace.addHandler(handler)
    try:
        yield
    finally:
        trace.removeHandler(handler)


@contextlib.contextmanager
def recompile_limits(callback: Callable[[str, int, CodePlace], None]) -> Iterator[None]:
    """Tell `callback` the name of the limit, its value and the function, when Dynamo gives up on a function.

    torch only logs this: a warning of `torch._dynamo.convert_frame` whose arguments are the name, the value, the
    function as text and the last reason (2.2 to 2.15).
    """
    handler = _LimitHandler(callback)
    log = logging.getLogger(_D + "convert_frame")
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)


def graph_breaks(callback: Callable[[BreakEvent], None]) -> contextlib.AbstractContextManager[None]:
    """Hand every graph break to `callback`; a break that torch has already told about is not told again."""

    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(original)

        def log_graph_break(*args: Any, **kwargs: Any) -> Any:
            with _harmless("a graph break"):
                given = signature.bind(*args, **kwargs).arguments
                error = given.get("exc")
                if error is not None and not getattr(error, "logged", False):
                    callback(_break_event(args[0], str(given.get("reason", "")), error))
            return original(*args, **kwargs)

        return log_graph_break

    return replaced(LOG_BREAK, make)


def graphs(callback: Callable[[GraphEvent], None]) -> contextlib.AbstractContextManager[None]:
    """Hand every captured graph to `callback` before the backend may change it."""

    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        def call_user_compiler(self: Any, gm: torch.fx.GraphModule, *args: Any, **kwargs: Any) -> Any:
            with _harmless("a graph"):
                code = getattr(getattr(self, "root_tx", None), "f_code", None)
                callback(GraphEvent(gm, code, compile_id() or "?", _is_inductor(getattr(self, "compiler_fn", None))))
            return original(self, gm, *args, **kwargs)

        return call_user_compiler

    return replaced(CALL_BACKEND, make)


def backend_guards_left_out() -> contextlib.AbstractContextManager[None]:
    """Let no guard of the backend's take part, for a program that does not say that this backend compiles it.

    Inductor bounds sizes and strides where it decides on code; `ShapeEnv.suppress_guards` is what torch itself uses to
    look at sizes without that (2.1 to 2.15).
    """

    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        def call_user_compiler(self: Any, *args: Any, **kwargs: Any) -> Any:
            shape_env = getattr(self, "shape_env", None)
            with shape_env.suppress_guards() if shape_env is not None else contextlib.nullcontext():
                return original(self, *args, **kwargs)

        return call_user_compiler

    return replaced(CALL_BACKEND, make)


def skipped_frames(callback: Callable[[SkipEvent], None]) -> contextlib.AbstractContextManager[None]:
    """Hand every frame that Dynamo skips to `callback`."""

    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        def add_skip_reason(reason: str, frame: Any, *args: Any, **kwargs: Any) -> Any:
            with _harmless("a skipped frame"):
                callback(SkipEvent(frame.f_code, str(reason)))
            return original(reason, frame, *args, **kwargs)

        return add_skip_reason

    return replaced(SKIP, make)


def guard_failures(callback: Callable[[FailedFrame], None]) -> contextlib.AbstractContextManager[None]:
    """Hand the frame whose guards failed to `callback`, before the trace record with the reasons."""

    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        def get_and_maybe_log_recompilation_reasons(entries: Any, frame: Any, *args: Any, **kwargs: Any) -> Any:
            with _harmless("a failed guard"):
                callback(FailedFrame(frame.f_code, frame.f_locals, frame.f_globals))
            return original(entries, frame, *args, **kwargs)

        return get_and_maybe_log_recompilation_reasons

    return replaced(RECOMPILE_REASONS, make)


def tracing_warnings(callback: Callable[[WarningEvent], None]) -> contextlib.AbstractContextManager[None]:
    """Hand every warning that is shown while Dynamo traces to `callback`."""

    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        def _showwarnmsg(message: warnings.WarningMessage) -> Any:
            with _harmless("a warning"):
                at = compile_id()
                if at is not None and not in_backend() and not _hidden(message):
                    stack = (*frames_above(), *_plain_frames(torch._guards.TracingContext.extract_stack()))
                    callback(WarningEvent(message.category, str(message.message), stack, at))
            return original(message)

        # Compiled code calls this one at run time; Dynamo must not find a function of ours to compile there.
        return torch.compiler.disable(_showwarnmsg)

    return replaced(SHOW_WARNING, make)


def backward_passes(callback: Callable[[], None]) -> contextlib.AbstractContextManager[None]:
    """Tell `callback` each time the program asks for gradients."""

    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        def _engine_run_backward(*args: Any, **kwargs: Any) -> Any:
            callback()
            return original(*args, **kwargs)

        return torch.compiler.disable(_engine_run_backward, recursive=False)

    return replaced(RUN_BACKWARD, make)


# Where things are


def compile_id() -> str | None:
    """torch's id of the compilation under way, such as `0/0`.  `CompileContext` is the same in 2.11 to 2.15."""
    found = torch._guards.CompileContext.current_compile_id()
    return str(found) if found is not None else None


def in_backend() -> bool:
    """Whether a backend is at work below the calling function, so that Dynamo is not tracing user code now."""
    return any(frame.f_code.co_name == "call_user_compiler" for frame in _stack())


def frames_above() -> tuple[Frame, ...]:
    """The calls between the outermost compiled region's entry and the frame that Dynamo is converting.

    Outermost first; frames of Dynamo itself are left out.  What called the compiled function is not part of it.
    """
    below = itertools.dropwhile(lambda frame: not _is_convert(frame), _stack())
    above = [frame for frame in below if not _is_convert(frame)]
    entries = [at for at, frame in enumerate(above) if _is_entry(frame)]
    inside = above[: entries[-1]] if entries else above
    return tuple(_live_frame(frame) for frame in reversed(inside) if not _is_entry(frame))


def message_of(error: BaseException) -> str:
    """torch's message as it was raised; handling an exception adds stacks to its text, but not to `msg`."""
    return getattr(error, "msg", None) or str(error)


def traced_frames(error: BaseException) -> tuple[Frame, ...]:
    """The frames that Dynamo was tracing when it raised `error`, outermost first (`real_stack` in 2.11 to 2.15)."""
    return _plain_frames(getattr(error, "real_stack", None) or ())


def code_place(code: CodeType) -> CodePlace:
    """Where the function of a code object starts; for the rest of a function after a break, where it resumes."""
    function, resumed = original_name(code.co_name)
    return CodePlace(code.co_filename, code.co_firstlineno, function, resumed)


def original_name(name: str) -> tuple[str, bool]:
    """The user's name for a function, and whether `name` is Dynamo's for what follows a graph break in it."""
    resumed = False
    while match := _RESUMED.fullmatch(name):
        name, resumed = match.group(1), True
    return name, resumed


def told_break(record: Record) -> BreakEvent | None:
    """The graph break in a `dynamo_graph_break_reason` record, for a torch without the point that hands out objects.

    It lacks columns, and the calls above what is compiled are not told from the rest of the program's.
    """
    head, _, stack = record.payload.partition("\nUser code traceback:\n")
    _, told, reason = head.partition("\nGraph Break Reason: ")
    if not told:
        return None
    message = reason.partition("\n\n")[2] if reason.startswith(("Encountered", "Failed to handle")) else reason
    own = stack.partition("\nTraceback (most recent call last):")[0]
    frames = tuple(
        Frame(m["file"], int(m["line"]), *original_name(m["function"])[:1]) for m in _STACK_LINE.finditer(own)
    )
    return BreakEvent(reason, message.strip(), frames, frames[-1].function if frames else "?", record.compile_id or "?")


def failure() -> BaseException | None:
    """The exception that a `dynamo_error` record is about: torch writes it while handling the exception."""
    return sys.exc_info()[1]


def started_function(record: Record) -> CodePlace | None:
    """The function that a `dynamo_start` record is about: the last frame of its stack."""
    stack = record.fields.get("stack") or ()
    last = stack[-1] if stack else {}
    file = interned(last.get("filename", -1))
    if file is None:
        return None
    function, resumed = original_name(str(last.get("name")))
    return CodePlace(file, int(last.get("line") or 1), function, resumed)


def recorded_frames(stack: Iterable[Mapping[str, Any]]) -> tuple[Frame, ...]:
    """The frames of a stack in the structured trace, where file names are numbers."""
    return tuple(
        Frame(
            file=interned(entry.get("filename", -1)) or "<unknown>",
            line=int(entry.get("line") or 1),
            function=original_name(str(entry.get("name")))[0],
        )
        for entry in stack
    )


def interned(number: int) -> str | None:
    """The file name behind a number in stacks of the structured trace (`structured.INTERN_TABLE`, 2.3 to 2.15)."""
    table: Mapping[str, int] = getattr(torch._logging.structured, "INTERN_TABLE", {})
    return next((text for text, known in table.items() if known == number), None)


def uncacheable(node: torch.fx.Node) -> str | None:
    """Why AOTAutograd's cache would refuse a graph with this node, None where it would not, or cannot be asked.

    `check_node_safe` only reads the node and raises; 2.4 to 2.15.
    """
    try:
        from torch._functorch._aot_autograd.autograd_cache import BypassAOTAutogradCache, check_node_safe
    except ImportError:
        return None
    try:
        check_node_safe(node)
    except BypassAOTAutogradCache as refusal:
        return str(refusal)
    except Exception:
        logger.debug("the cache check failed on %s", node, exc_info=True)
    return None


def is_graph_break(error: BaseException) -> bool:
    """Whether an exception is a graph break that nobody was allowed to handle, as under `fullgraph=True`."""
    return isinstance(error, torch._dynamo.exc.Unsupported | torch._dynamo.exc.UserError)


def is_recompile_limit(error: BaseException) -> bool:
    """Whether an exception says that a recompile limit was hit under `fullgraph=True`."""
    return isinstance(error, torch._dynamo.exc.FailOnRecompileLimitHit)


# The registry of graph breaks


@lru_cache(maxsize=1)
def _break_ids() -> Mapping[str, str]:
    path = Path(torch.__file__).parent / "_dynamo" / _REGISTRY
    try:
        registry = json.loads(path.read_text(encoding="utf-8"))
        return {entry["Gb_type"]: key for key, entries in registry.items() for entry in entries}
    except (OSError, ValueError, KeyError, TypeError):
        logger.warning("the graph-break registry of this torch cannot be read", exc_info=True)
        return {}


def break_id(kind: str) -> str | None:
    """torch's id (`GB0059`) for a type of graph break, None where the registry does not know it."""
    return _break_ids().get(kind)


def break_link(identifier: str) -> str:
    """The registry's page about a graph break."""
    return _BREAK_SITE.format(number=identifier.removeprefix("GB"))


# Internals


def _break_event(translator: Any, reason: str, error: BaseException) -> BreakEvent:
    code = getattr(getattr(getattr(translator, "output", None), "root_tx", None) or translator, "f_code", None)
    function = code_place(code).function if isinstance(code, CodeType) else "?"
    stack = (*frames_above(), *traced_frames(error))
    return BreakEvent(reason, message_of(error), stack, function, compile_id() or "?")


class _TraceHandler(logging.Handler):
    def __init__(self, callback: Callable[[Record], None]) -> None:
        super().__init__(logging.DEBUG)
        self._callback = callback

    @torch.compiler.disable
    def emit(self, record: logging.LogRecord) -> None:
        with _harmless("a trace record"):
            if found := _read_record(record):
                self._callback(found)


def _read_record(record: logging.LogRecord) -> Record | None:
    metadata = getattr(record, "metadata", None)
    if not isinstance(metadata, dict):
        return None
    key = next((key for key in metadata if key not in _CONTEXT_KEYS), None)
    if key is None or not isinstance(metadata[key], dict):
        return None
    fields = metadata[key]
    name = str(fields.get("name")) if key == "artifact" else key
    frame_id, nth = metadata.get("frame_id"), metadata.get("frame_compile_id")
    return Record(
        name=name,
        fields=fields,
        payload=getattr(record, "payload", None) or "",
        compile_id=f"{frame_id}/{nth}" if frame_id is not None else None,
        attempt=int(metadata.get("attempt") or 0),
    )


class _LimitHandler(logging.Handler):
    _FUNCTION = re.compile(r"'(?P<name>.*)' \((?P<file>.*):(?P<line>\d+)\)")

    def __init__(self, callback: Callable[[str, int, CodePlace], None]) -> None:
        super().__init__(logging.WARNING)
        self._callback = callback

    @torch.compiler.disable
    def emit(self, record: logging.LogRecord) -> None:
        with _harmless("a recompile limit"):
            if "torch._dynamo hit config." not in str(record.msg) or not isinstance(record.args, tuple):
                return
            limit, value, function = record.args[:3]
            if match := self._FUNCTION.fullmatch(str(function)):
                name, resumed = original_name(match["name"])
                place = CodePlace(match["file"], int(match["line"]), name, resumed)
                self._callback(str(limit), int(str(value)), place)


def _hidden(message: warnings.WarningMessage) -> bool:
    """Whether torch is hiding this warning, which an access of its own brought up (`hide_warnings`, 2.4 to 2.15)."""
    shown = warnings.showwarning
    if getattr(shown, "__module__", None) != "torch._logging._internal":
        return False
    lets_through = inspect.getclosurevars(shown).nonlocals.get("filter_fn", lambda *_: True)
    return not lets_through(message.message, message.category, message.filename, message.lineno, None, None)


def _is_inductor(backend: Any) -> bool:
    """Whether a backend is torch.compile's default one, whatever is wrapped around it (named so in 2.0 to 2.15)."""
    for _ in range(8):
        if type(backend).__name__ == "_TorchCompileInductorWrapper":
            return True
        backend = getattr(backend, "_torchdynamo_orig_backend", None) or getattr(
            backend, "_torchdynamo_orig_callable", None
        )
    return False


@contextlib.contextmanager
def _harmless(what: str) -> Iterator[None]:
    try:
        yield
    except Exception:
        logger.exception("observing %s failed", what)


def _stack() -> Iterator[FrameType]:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        yield frame
        frame = frame.f_back


def _is_convert(frame: FrameType) -> bool:
    return frame.f_globals.get("__name__") == _D + "convert_frame"


def _is_entry(frame: FrameType) -> bool:
    return frame.f_globals.get("__name__") == _D + "eval_frame"


def _live_frame(frame: FrameType) -> Frame:
    code = frame.f_code
    function, resumed = original_name(code.co_name)
    end_line = column = end_column = None
    if sys.version_info >= (3, 11) and frame.f_lasti >= 0:
        positions = next(itertools.islice(code.co_positions(), frame.f_lasti // 2, None), None)
        if positions and positions[0] == frame.f_lineno:
            _, end_line, column, end_column = positions
    return Frame(code.co_filename, frame.f_lineno, function, column, end_column, end_line, resumed)


def _plain_frames(summaries: Any) -> tuple[Frame, ...]:
    return tuple(_plain_frame(summary) for summary in summaries)


def _plain_frame(summary: Any) -> Frame:
    function, resumed = original_name(summary.name)
    return Frame(
        file=summary.filename,
        line=summary.lineno or 1,
        function=function,
        column=getattr(summary, "colno", None),
        end_column=getattr(summary, "end_colno", None),
        end_line=getattr(summary, "end_lineno", None),
        resumed=resumed,
    )
