"""torch's own account of compile time, while it is kept: every `dynamo_timed` block as it begins and ends.

`dynamo_timed` (2.0 and later) is what `compilation_metrics` and `torch._dynamo.utils.compile_times` add up.  It tells
each block to `ChromiumEventLogger.log_event_start` and `log_event_end`, 2.5 to 2.15; run on 2.11 to 2.15.
This module knows which blocks are phases that a user has heard of, and nothing of reports.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from inductoscope.compiler.compat.dynamo_stacks import compile_id
from inductoscope.compiler.compat.dynamo_trace import harmless
from inductoscope.compiler.compat.inductor import Point, replaced

_LOGGER = "ChromiumEventLogger."
EVENT_START = Point("torch._dynamo.utils", _LOGGER + "log_event_start", "a timed block of torch's begins")
EVENT_END = Point("torch._dynamo.utils", _LOGGER + "log_event_end", "a timed block of torch's ends")

ALL_POINTS: tuple[Point, ...] = (EVENT_START, EVENT_END)

PHASES = {
    # Dynamo
    "entire_frame_compile": "compile",
    "bytecode_tracing": "dynamo",
    "build_guards": "guards",
    "gc": "garbage collection",
    "pgo.get_local_code_state": "profile of sizes",
    "pgo.put_local_code_state": "profile of sizes",
    "backend_compile": "backend",
    # AOTAutograd
    "create_aot_dispatcher_function": "aot autograd",
    "aot_collect_metadata": "aot analysis",
    "aot_trace_joint_graph": "joint tracing",
    "min_cut_rematerialization_partition": "partitioning",
    "entire_backward_compile": "compile backward",
    # Inductor
    "_recursive_pre_grad_passes": "pre-grad passes",
    "_recursive_joint_graph_passes": "joint passes",
    "_recursive_post_grad_passes": "post-grad passes",
    "compile_fx.<locals>.fw_compiler_base": "inductor",
    "compile_fx.<locals>.bw_compiler": "inductor backward",
    "additional_fake_tensor_prop": "shape propagation",
    "GraphLowering.run": "lowering",
    "code_gen": "code generation",
    "Scheduler.__init__": "scheduling",
    "Scheduler.codegen": "kernel code",
    "PythonWrapperCodegen.generate": "wrapper code",
    "CppWrapperCpu.generate": "wrapper code",
    "CppWrapperGpu.generate": "wrapper code",
    "PyCodeCache.load_by_key_path": "loading code",
}
"""torch's name of a block (2.11 to 2.15) and the phase that it is.  Other blocks count for what they are part of."""


class Listener(Protocol):
    """Who is told of phases: `begin` returns what `end` is to be given."""

    def begin(self, name: str, graph: str | None) -> int:
        """A phase begins, in the compilation `graph`."""

    def end(self, depth: int) -> None:
        """The phase ends."""


@dataclass(frozen=True)
class _Open:
    event: str
    depth: int


@contextlib.contextmanager
def told_to(listener: Listener) -> Iterator[None]:
    """Tell `listener` of every phase of compiling on this thread while the block runs."""
    running: list[_Open] = []
    thread = threading.get_ident()

    def start(original: Callable[..., Any]) -> Callable[..., Any]:
        def log_event_start(logger: Any, event_name: str, *args: Any, **kwargs: Any) -> Any:
            with harmless("the begin of a phase"):
                if event_name in PHASES and threading.get_ident() == thread:
                    running.append(_Open(event_name, listener.begin(PHASES[event_name], compile_id())))
            return original(logger, event_name, *args, **kwargs)

        return log_event_start

    def end(original: Callable[..., Any]) -> Callable[..., Any]:
        def log_event_end(logger: Any, event_name: str, *args: Any, **kwargs: Any) -> Any:
            with harmless("the end of a phase"):
                if event_name in PHASES and threading.get_ident() == thread:
                    _end(running, event_name, listener)
            return original(logger, event_name, *args, **kwargs)

        return log_event_end

    with replaced(EVENT_START, start), replaced(EVENT_END, end):
        yield


def _end(running: list[_Open], event: str, listener: Listener) -> None:
    """End the innermost block of that name; none is open when it began before anybody listened."""
    for at in reversed(range(len(running))):
        if running[at].event == event:
            listener.end(running[at].depth)
            del running[at:]
            return
