"""Dynamo's private parts that capture observes, and nothing else.

Checked by running on torch 2.11 to 2.15.  Every observer only looks: it calls the original with the original arguments,
and an error of ours never reaches the program.  Where a version lacks one of the points, its observer stays silent, the
report says so, and the structured trace alone tells.  This module knows nothing of reports.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import logging
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import CodeType
from typing import Any

import torch

from inductoscope.compiler.compat import backend_refusals
from inductoscope.compiler.compat import dynamo_stacks as stacks
from inductoscope.compiler.compat.dynamo_breaks import message_of
from inductoscope.compiler.compat.dynamo_trace import Record, harmless
from inductoscope.compiler.compat.inductor import Point, replaced
from inductoscope.compiler.usercode import Frame

logger = logging.getLogger(__name__)

_D = "torch._dynamo."
LOG_BREAK = Point(
    _D + "symbolic_convert",
    "InstructionTranslatorBase.log_graph_break",
    "the exception behind a graph break, as an object",
    parameters=("reason", "exc"),
)
CALL_BACKEND = Point(
    _D + "output_graph", "OutputGraph.call_user_compiler", "each graph, just before the backend has it"
)
RECOMPILE_REASONS = Point(
    _D + "convert_frame",
    "get_and_maybe_log_recompilation_reasons",
    "the frame whose guards failed, to read actual values",
)
# CPython hands every warning that its filters let through to this function (3.6 to 3.14).  `warnings.showwarning` would
# be the public place, but compiled code that enters `catch_warnings` reads that one, so that Dynamo would guard on it.
SHOW_WARNING = Point("warnings", "_showwarnmsg", "warnings while Dynamo traces")
RUN_BACKWARD = Point("torch.autograd", "_engine_run_backward", "whether the program asks for gradients")

ALL_POINTS: tuple[Point, ...] = (LOG_BREAK, CALL_BACKEND, RECOMPILE_REASONS, SHOW_WARNING, RUN_BACKWARD)


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
class WarningEvent:
    """A Python warning that came up while Dynamo traced user code; `stack` is where tracing stood."""

    category: type[Warning]
    text: str
    stack: tuple[Frame, ...]
    compile_id: str


@dataclass(frozen=True)
class FailedFrame:
    """The variables that guards were checked against when a compiled function could not be used again.

    `callers` are the calls between what the program compiles and this function, outermost first.
    """

    code: CodeType
    callers: tuple[Frame, ...]
    f_locals: Mapping[str, Any] = field(repr=False)
    f_globals: Mapping[str, Any] = field(repr=False)


@contextlib.contextmanager
def graph_breaks(callback: Callable[[BreakEvent], None]) -> Iterator[None]:
    """Hand every graph break to `callback`; a break that torch has already told about is not told again."""

    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(original)

        @functools.wraps(original)
        def log_graph_break(*args: Any, **kwargs: Any) -> Any:
            with harmless("a graph break"):
                given = signature.bind(*args, **kwargs).arguments
                error = given.get("exc")
                if error is not None and not getattr(error, "logged", False):
                    callback(_break_event(args[0], str(given.get("reason", "")), error))
            return original(*args, **kwargs)

        return log_graph_break

    with backend_refusals.noting(), replaced(LOG_BREAK, make):
        yield


def graphs(
    callback: Callable[[GraphEvent], None], given_up: Callable[[str], None]
) -> contextlib.AbstractContextManager[None]:
    """Hand every captured graph to `callback` before the backend may change it.

    `given_up` is told the compile id of a graph that Dynamo does without, for what the backend raised: it begins its
    analysis anew, breaks the graph, or leaves the function alone.
    """
    exc = torch._dynamo.exc

    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        def call_user_compiler(self: Any, gm: torch.fx.GraphModule, *args: Any, **kwargs: Any) -> Any:
            with harmless("a graph"):
                code = getattr(getattr(self, "root_tx", None), "f_code", None)
                callback(
                    GraphEvent(gm, code, stacks.compile_id() or "?", _is_inductor(getattr(self, "compiler_fn", None)))
                )
            try:
                return original(self, gm, *args, **kwargs)
            except (exc.Unsupported, exc.RestartAnalysis, exc.SkipFrame):
                given_up(stacks.compile_id() or "?")
                raise

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


def guard_failures(callback: Callable[[FailedFrame], None]) -> contextlib.AbstractContextManager[None]:
    """Hand the frame whose guards failed to `callback`, before the trace record with the reasons."""

    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        def get_and_maybe_log_recompilation_reasons(entries: Any, frame: Any, *args: Any, **kwargs: Any) -> Any:
            with harmless("a failed guard"):
                callback(FailedFrame(frame.f_code, stacks.frames_above(), frame.f_locals, frame.f_globals))
            return original(entries, frame, *args, **kwargs)

        return get_and_maybe_log_recompilation_reasons

    return replaced(RECOMPILE_REASONS, make)


def tracing_warnings(callback: Callable[[WarningEvent], None]) -> contextlib.AbstractContextManager[None]:
    """Hand every warning that is shown while Dynamo traces to `callback`."""

    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        @torch.compiler.disable
        def tell(message: warnings.WarningMessage) -> None:
            with harmless("a warning"):
                at = stacks.compile_id()
                if at is not None and not stacks.in_backend() and not _hidden(message):
                    stack = (*stacks.frames_above(), *stacks.plain_frames(torch._guards.TracingContext.extract_stack()))
                    callback(WarningEvent(message.category, str(message.message), stack, at))

        # Compiled code calls this at run time.  Dynamo looks at what it calls, as it would without us.
        def _showwarnmsg(message: warnings.WarningMessage) -> Any:
            tell(message)
            return original(message)

        return _showwarnmsg

    return replaced(SHOW_WARNING, make)


def backward_passes(callback: Callable[[], None]) -> contextlib.AbstractContextManager[None]:
    """Tell `callback` each time the program asks for gradients; AOTAutograd does so too, while it traces."""

    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        def _engine_run_backward(*args: Any, **kwargs: Any) -> Any:
            if stacks.compile_id() is None:
                callback()
            return original(*args, **kwargs)

        return torch.compiler.disable(_engine_run_backward, recursive=False)

    return replaced(RUN_BACKWARD, make)


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
    frames = stacks.written_frames(own)
    return BreakEvent(reason, message.strip(), frames, frames[-1].function if frames else "?", record.compile_id or "?")


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


def _break_event(translator: Any, reason: str, error: BaseException) -> BreakEvent:
    code = getattr(getattr(getattr(translator, "output", None), "root_tx", None) or translator, "f_code", None)
    function = stacks.code_place(code).function if isinstance(code, CodeType) else "?"
    # Before the first instruction there is no traced frame yet, only the function itself.
    traced = stacks.traced_frames(error) or stacks.entered(code)
    message = message_of(error)
    refusal = backend_refusals.refusal_behind(error)
    if refusal is not None:
        traced, message = refusal.stack, refusal.message()
    stack = (*stacks.frames_above(), *traced)
    return BreakEvent(reason, message, stack, function, stacks.compile_id() or "?")


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
