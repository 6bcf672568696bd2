"""Proof that what is called compiled really runs compiled code.

A program can go through `torch.compile` and still run eagerly: a skipped frame, a guard that fails on each call, the
recompile limit.  A speed-up measured then would compare eager with eager.  Must not know how time is taken.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch.profiler import ProfilerActivity, profile

from inductoscope.compiler.bench.refusal import RefusedError
from inductoscope.compiler.compat.bench import Counts, compile_ids_with_graphs

# The range that Dynamo opens around each entry into code that it made, while a profiler is on; the compile id follows.
_REGION = "Torch-Compiled Region: "
_LAUNCHES = ("cudaLaunchKernel", "cuLaunchKernel", "cudaGraphLaunch")


class Watch(enum.Enum):
    """What of a call is watched.

    Watching a GPU attaches CUPTI to the process, which from then on makes each launch slower: never before timing.
    """

    ENTRIES = "entries"  # into compiled code
    LAUNCHES = "launches"  # these, and what is launched on a GPU


@dataclass(frozen=True)
class CallTrace:
    """What one call did: compile ids of the code it entered, and kernel launches (None where nobody watched a GPU)."""

    compile_ids: frozenset[str]
    launches: int | None


def trace(call: Callable[[], object], device: str, watch: Watch) -> CallTrace:
    """Watch one call with torch's profiler."""
    on_gpu = device.startswith("cuda") and watch is Watch.LAUNCHES
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if on_gpu else [])]
    with profile(activities=activities, acc_events=True) as profiler:
        call()
        if on_gpu:
            torch.cuda.synchronize()
    names = [event.name for event in profiler.events()]
    return CallTrace(
        compile_ids=frozenset(name.removeprefix(_REGION) for name in names if name.startswith(_REGION)),
        launches=sum(name.startswith(_LAUNCHES) for name in names) if on_gpu else None,
    )


def require_compiled(seen: CallTrace, counted: Counts) -> None:
    """Raise `RefusedError` unless the call entered code with a compiled graph in it."""
    if counted.graphs == 0:
        raise RefusedError(
            "Nothing was compiled: torch.compile made no code for any graph, so both sides would run eagerly. "
            "The check of this target says which line, which skipped function or which hidden error is the cause."
        )
    if not seen.compile_ids & compile_ids_with_graphs():
        graphs = "One graph was compiled" if counted.graphs == 1 else f"{counted.graphs} graphs were compiled"
        raise RefusedError(
            f"{graphs}, but a repeated call used none: the recompile limit was hit or a guard keeps failing, "
            "so both sides would run eagerly. The check of this target says which guard."
        )


def require_settled(during: Counts) -> None:
    """Raise `RefusedError` when Dynamo compiled again between the timed calls."""
    if during.frames:
        raise RefusedError(
            f"The program was compiled again {during.frames} time{'' if during.frames == 1 else 's'} while it was "
            "timed, although the arguments stayed the same: something that it guards on changes on each call. "
            "The check of this target says which guard."
        )
