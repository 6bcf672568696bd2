"""Predicted time of a whole call: what its kernels take on the device, and what the host takes to launch them.

In a row of calls the card works on one call while the host launches the next, so that a call takes as long as the
slower of the two.  Kernels that follow each other do not wait for the host, and take less than each by itself, which
is what the models of single kernels predict.  What has no prediction is counted and never taken for nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from inductoscope.compiler.predict.eager import HAND_WRITTEN, EagerOp, Launches, kernels_of, time_of_operator
from inductoscope.compiler.predict.model import MEASURED
from inductoscope.protocol.devices import Device
from inductoscope.protocol.report import Kernel, KernelLanguage, Phase, Predicted, PredictedCall, PredictedRun

_ALONE_US = 2.6
"""What a kernel that is timed by itself takes longer than in a row of kernels."""
_LEAST_US = 1.4
_TOGETHER = 0.15
"""Share by which all kernels of a call are off in the same direction; the rest of their errors evens out."""


@dataclass(frozen=True)
class Host:
    """Microseconds of the host: to enter a graph, to launch a kernel, and for an operator that launches none."""

    enter_us: float
    launch_us: float
    other_us: float


_COMPILED = Host(30.0, 4.5, 0.0)
_EAGER = {Phase.FORWARD: Host(5.0, 6.0, 2.0), Phase.BACKWARD: Host(15.0, 7.5, 2.5)}
_HOST_LOW, _HOST_HIGH = 0.7, 1.6
_MODEL = "kernels as fitted on an H200, what launching takes the host assumed"


@dataclass(frozen=True)
class GraphCall:
    """One graph as it takes part in a call of the target: how often, and what it dispatches when it is not compiled.

    `forward` and `backward` are None where that is not known, which `missing` says why.
    """

    graph: str
    times: int
    forward: tuple[EagerOp, ...] | None
    backward: tuple[EagerOp, ...] | None = None
    missing: str | None = None

    def eager(self, phase: Phase) -> tuple[EagerOp, ...] | None:
        """The operators of a phase."""
        return self.forward if phase is Phase.FORWARD else self.backward


def calls(kernels: Sequence[Kernel], graphs: Sequence[GraphCall], device: Device) -> tuple[PredictedCall, ...]:
    """Each graph of `graphs` in each phase that it has kernels for, then all that a call of the target goes through.

    `kernels` have their predicted times on `device` already.
    """
    launched: dict[tuple[str, Phase], list[Kernel]] = {}
    for kernel in kernels:
        launched.setdefault((kernel.graph, kernel.phase), []).append(kernel)
    found = [
        _call(graph, phase, launched[graph.graph, phase], device)
        for phase in Phase
        for graph in graphs
        if (graph.graph, phase) in launched
    ]
    whole = [_whole(part) for phase in Phase if (part := [one for one in found if one.phase is phase and one.times])]
    return (*found, *whole)


def _call(graph: GraphCall, phase: Phase, kernels: Sequence[Kernel], device: Device) -> PredictedCall:
    compiled = _compiled(kernels, device)
    ops = graph.eager(phase)
    own = [kernel.predicted for kernel in kernels if kernel.user_written]
    eager = _eager(ops, phase, device, own) if ops is not None else None
    return _compared(graph.graph, phase, graph.times, compiled, eager, device, graph.missing if ops is None else None)


def _compiled(kernels: Sequence[Kernel], device: Device) -> PredictedRun:
    host = _COMPILED.enter_us + _COMPILED.launch_us * len(kernels)
    on_host = sum(kernel.language is KernelLanguage.CPP for kernel in kernels)
    known = [kernel.predicted for kernel in kernels if kernel.predicted is not None]
    return _run(known, host, len(kernels) - on_host, len(kernels) - len(known), device)


def _eager(ops: Sequence[EagerOp], phase: Phase, device: Device, own: Sequence[Predicted | None]) -> PredictedRun:
    """`own` are the times of the hand-written kernels, which are launched as they are on both sides."""
    launching = [op for op in ops if op.launches is not Launches.NOTHING]
    same = len(own) == sum(op.name == HAND_WRITTEN for op in launching)
    theirs = iter(own if same else ())
    times = [next(theirs, None) if op.name == HAND_WRITTEN else time_of_operator(op, device) for op in launching]
    host = _EAGER[phase]
    spent = host.enter_us + host.launch_us * len(launching) + host.other_us * (len(ops) - len(launching))
    known = [time for time in times if time is not None]
    return _run(known, spent, sum(map(kernels_of, launching)), len(times) - len(known), device)


def _run(known: Sequence[Predicted], host_us: float, launches: int, left_out: int, device: Device) -> PredictedRun:
    card, low, high = _in_a_row(known)
    slow, fast = (_HOST_HIGH, _HOST_LOW)
    return PredictedRun(
        us=_rounded(max(card, host_us)),
        low_us=_rounded(max(low, host_us * fast)),
        high_us=_rounded(max(high, host_us * slow)),
        device_us=_rounded(card),
        host_us=_rounded(host_us),
        launches=launches,
        left_out=left_out,
    )


def _in_a_row(known: Iterable[Predicted]) -> tuple[float, float, float]:
    """The sum of single times with its range: some of the errors are common to all, the others even out."""
    total = down = up = 0.0
    for one in known:
        us = max(one.us - _ALONE_US, _LEAST_US)
        scale = us / one.us
        total += us
        down += ((one.us - (one.low_us or one.us)) * scale) ** 2
        up += (((one.high_us or one.us) - one.us) * scale) ** 2
    return total, max(0.0, total * (1 - _TOGETHER) - math.sqrt(down)), total * (1 + _TOGETHER) + math.sqrt(up)


def _whole(parts: Sequence[PredictedCall]) -> PredictedCall:
    """A call of the target: each graph as often as it runs in one."""
    eager = [(one.eager, one.times) for one in parts if one.eager is not None]
    complete = len(eager) == len(parts)
    compiled = _added([(one.compiled, one.times) for one in parts])
    missing = next((one.note for one in parts if one.eager is None), None)
    first = parts[0]
    return _with_speedup(
        PredictedCall(None, first.phase, 1, compiled, _added(eager) if complete else None, first.model, note=missing)
    )


def _added(runs: Sequence[tuple[PredictedRun, int]]) -> PredictedRun:
    def total(name: str) -> float:
        return _rounded(sum(getattr(run, name) * times for run, times in runs))

    return PredictedRun(
        us=total("us"),
        low_us=total("low_us"),
        high_us=total("high_us"),
        device_us=total("device_us"),
        host_us=total("host_us"),
        launches=sum(run.launches * times for run, times in runs),
        left_out=sum(run.left_out * times for run, times in runs),
    )


def _compared(
    graph: str | None,
    phase: Phase,
    times: int,
    compiled: PredictedRun,
    eager: PredictedRun | None,
    device: Device,
    missing: str | None,
) -> PredictedCall:
    model = _MODEL if device.key == MEASURED.key else f"{_MODEL}, scaled by the figures of this device"
    note = f"What it takes eager is not known: {missing}." if missing is not None else None
    return _with_speedup(PredictedCall(graph, phase, times, compiled, eager, model, note=note))


def _with_speedup(call: PredictedCall) -> PredictedCall:
    """The call with what compiling gains, where both sides are known in full."""
    eager, compiled = call.eager, call.compiled
    if eager is None or eager.left_out or compiled.left_out or not compiled.us:
        return call
    return replace(
        call,
        speedup=round(eager.us / compiled.us, 2),
        speedup_low=round(eager.low_us / compiled.high_us, 2),
        speedup_high=round(eager.high_us / compiled.low_us, 2),
    )


def _rounded(us: float) -> float:
    return round(us, 2)
