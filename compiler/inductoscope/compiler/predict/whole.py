"""Predicted time of a whole call: what its kernels take on the device, and what the host takes to launch them.

In a row of calls the card works on one call while the host launches the next, so that a call takes as long as the
slower of the two.  Kernels that follow each other do not wait for the host, and take less than each by itself, which
is what the models of single kernels predict.  What has no prediction is counted and never taken for nothing.

Models of single kernels are fitted (see `generated`, `library`); all constants here are assumptions, which the ranges
allow for.
"""

from __future__ import annotations

import enum
import itertools
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
_CARD = (0.85, 1.0, 1.15)
"""Factors by which all kernels of a call are off in the same direction; the rest of their errors evens out."""
_HOST = (0.7, 1.0, 1.6)
"""How fast a host may be, against the one that the launch costs below are for."""
_LAUNCH_COSTS = 1.15
"""How far the costs of launching compiled and eager may be apart from each other on one host."""


class Replay(enum.Enum):
    """How the kernels of compiled graphs are launched."""

    SINGLY = "singly"
    AS_ONE = "as one"  # by CUDA graphs


@dataclass(frozen=True)
class Host:
    """Microseconds of the host: to enter a graph, to launch a kernel, and for an operator that launches none."""

    enter_us: float
    launch_us: float
    other_us: float = 0.0


_COMPILED = {Replay.SINGLY: Host(30.0, 4.5), Replay.AS_ONE: Host(45.0, 0.0)}
_EAGER = {Phase.FORWARD: Host(5.0, 6.0, 2.0), Phase.BACKWARD: Host(15.0, 7.5, 2.5)}
_SIDES = 1.15
"""How far a speed-up may be off for reasons that only one side has: of seven programs that were timed on an H200 two
were 12 and 14 % above what all else allows for."""
_ALIKE = 0.05
"""How far the times of two library calls may be apart that are taken for the same one."""
_MODEL = "kernels as fitted on an H200, what launching takes the host assumed"


@dataclass(frozen=True)
class GraphCall:
    """One graph as it takes part in a call of the target: how often, and what it dispatches when it is not compiled.

    `forward` and `backward` are None where that is not known, which `missing` says why.  One that `branches` or loops
    by its data has kernels for each of its bodies, of which a call runs some.
    """

    graph: str
    times: int
    forward: tuple[EagerOp, ...] | None
    backward: tuple[EagerOp, ...] | None = None
    missing: str | None = None
    branches: bool = False

    def eager(self, phase: Phase) -> tuple[EagerOp, ...] | None:
        """The operators of a phase."""
        return self.forward if phase is Phase.FORWARD else self.backward


@dataclass(frozen=True)
class _Cost:
    """One way to run a graph: microseconds on the card, how far they may be lower or higher apart from what is common
    to all kernels, what they are one by one, microseconds of the host, and counts.  `library` are the library calls."""

    card: float
    down: float
    up: float
    singly: float
    host: float
    launches: int
    left_out: int
    library: tuple[Predicted, ...] = ()

    def without_errors_of(self, calls: Iterable[Predicted]) -> _Cost:
        """The same cost, of which the times of `calls` are taken for exact."""
        errors = [_error(one) for one in calls]
        down = max(0.0, self.down**2 - sum(low**2 for low, _ in errors))
        up = max(0.0, self.up**2 - sum(high**2 for _, high in errors))
        return replace(self, down=math.sqrt(down), up=math.sqrt(up))

    def us(self, card: float = 1.0, host: float = 1.0, own: float = 0.0) -> float:
        """The time with the factors `card` and `host`, and the card's own error from -1 (lowest) to 1 (highest)."""
        return max(self._on_card(card, own), self.host * host)

    def _on_card(self, factor: float, own: float) -> float:
        if own > 0:
            return self.card * factor + max(self.up * own, self.singly - self.card)  # at worst as slow as one by one
        return max(0.0, self.card * factor + self.down * own)


_Costs = Sequence[tuple[_Cost, int]]
"""Of graphs, with how often each runs."""


@dataclass(frozen=True)
class _Part:
    """A graph in one phase: how often it runs, and both ways to run it; `eager` is None where it is not known.

    `branches` as in `GraphCall`.
    """

    graph: str
    phase: Phase
    times: int
    compiled: _Cost
    eager: _Cost | None
    missing: str | None
    branches: bool


def calls(
    kernels: Sequence[Kernel], graphs: Sequence[GraphCall], device: Device, replay: Replay = Replay.SINGLY
) -> tuple[PredictedCall, ...]:
    """Each graph of `graphs` in each phase that it has kernels for, then all that a call of the target goes through.

    `kernels` have their predicted times on `device` already.
    """
    launched: dict[tuple[str, Phase], list[Kernel]] = {}
    for kernel in kernels:
        launched.setdefault((kernel.graph, kernel.phase), []).append(kernel)
    parts = [
        _part(graph, phase, launched[graph.graph, phase], device, replay)
        for phase in Phase
        for graph in graphs
        if (graph.graph, phase) in launched
    ]
    found = [_told(part.graph, part.times, [replace(part, times=1)], device) for part in parts]
    for phase in Phase:
        running = [part for part in parts if part.phase is phase and part.times]
        if running:
            found.append(_told(None, 1, running, device))
    return tuple(found)


def _part(graph: GraphCall, phase: Phase, kernels: Sequence[Kernel], device: Device, replay: Replay) -> _Part:
    ops = graph.eager(phase)
    own = [kernel.predicted for kernel in kernels if kernel.user_written]
    eager = _eager(ops, phase, device, own) if ops is not None else None
    missing = graph.missing if ops is None else None
    compiled = _compiled(kernels, _COMPILED[replay])
    return _Part(graph.graph, phase, graph.times, compiled, eager, missing, graph.branches)


def _compiled(kernels: Sequence[Kernel], host: Host) -> _Cost:
    on_host = sum(kernel.language is KernelLanguage.CPP for kernel in kernels)
    known = [kernel.predicted for kernel in kernels if kernel.predicted is not None]
    library = [one.predicted for one in kernels if one.predicted and one.language is KernelLanguage.EXTERN]
    spent = host.enter_us + host.launch_us * len(kernels)
    return _cost(known, spent, len(kernels) - on_host, len(kernels) - len(known), library)


def _eager(ops: Sequence[EagerOp], phase: Phase, device: Device, own: Sequence[Predicted | None]) -> _Cost:
    """`own` are the times of the hand-written kernels, which are launched as they are on both sides."""
    launching = [op for op in ops if op.launches is not Launches.NOTHING]
    same = len(own) == sum(op.name == HAND_WRITTEN for op in launching)
    theirs = iter(own if same else ())
    times = [next(theirs, None) if op.name == HAND_WRITTEN else time_of_operator(op, device) for op in launching]
    known = [time for time in times if time is not None]
    host = _EAGER[phase]
    spent = host.enter_us + host.launch_us * len(launching) + host.other_us * (len(ops) - len(launching))
    library = [time for op, time in zip(launching, times, strict=True) if time is not None and op.flops]
    return _cost(known, spent, sum(map(kernels_of, launching)), len(times) - len(known), library)


def _cost(
    known: Sequence[Predicted], host_us: float, launches: int, left_out: int, library: Iterable[Predicted]
) -> _Cost:
    """The sum of single times as they are in a row."""
    errors = [_error(one) for one in known]
    return _Cost(
        card=sum(map(_in_a_row, known)),
        down=math.sqrt(sum(low**2 for low, _ in errors)),
        up=math.sqrt(sum(high**2 for _, high in errors)),
        singly=sum(one.us for one in known),
        host=host_us,
        launches=launches,
        left_out=left_out,
        library=tuple(sorted(library, key=lambda one: one.us)),
    )


def _in_a_row(one: Predicted) -> float:
    return max(one.us - _ALONE_US, min(one.us, _LEAST_US))


def _error(one: Predicted) -> tuple[float, float]:
    """How much less and how much more a kernel in a row may take."""
    scale = _in_a_row(one) / one.us
    return (one.us - (one.low_us or one.us)) * scale, ((one.high_us or one.us) - one.us) * scale


def _told(graph: str | None, times: int, parts: Sequence[_Part], device: Device) -> PredictedCall:
    """What `parts` take together, each as often as it runs."""
    compiled = [(part.compiled, part.times) for part in parts]
    eager = [(part.eager, part.times) for part in parts if part.eager is not None]
    complete = len(eager) == len(parts)
    missing = next((part.missing for part in parts if part.eager is None), None)
    call = PredictedCall(
        graph=graph,
        phase=parts[0].phase,
        times=times,
        compiled=_run(compiled),
        eager=_run(eager) if complete else None,
        model=_MODEL if device.key == MEASURED.key else f"{_MODEL}, scaled by the figures of this device",
        note=f"What it takes eager is not known: {missing or 'it could not be run so'}." if not complete else None,
        every_branch=any(part.branches for part in parts),
    )
    known = complete and not any(cost.left_out for cost, _ in (*compiled, *eager))
    return _with_speedup(call, compiled, eager) if known else call


def _run(costs: _Costs) -> PredictedRun:
    return PredictedRun(
        us=_us(costs),
        low_us=_us(costs, card=_CARD[0], host=_HOST[0], own=-1.0),
        high_us=_us(costs, card=_CARD[-1], host=_HOST[-1], own=1.0),
        device_us=_rounded(sum(cost.card * times for cost, times in costs)),
        host_us=_rounded(sum(cost.host * times for cost, times in costs)),
        launches=sum(cost.launches * times for cost, times in costs),
        left_out=sum(cost.left_out * times for cost, times in costs),
    )


def _us(costs: _Costs, card: float = 1.0, host: float = 1.0, own: float = 0.0) -> float:
    return _rounded(sum(cost.us(card, host, own) * times for cost, times in costs))


def _with_speedup(call: PredictedCall, compiled: _Costs, eager: _Costs) -> PredictedCall:
    """The call with what compiling gains.

    Both sides run on one card and one host: what is common to all kernels, how fast the host is, and the times of
    library calls that both make are the same for them; all other errors are taken at their worst.
    """
    low, high = math.inf, 0.0
    pairs = [_both_alike(one, other) for (one, _), (other, _) in zip(compiled, eager, strict=True)]
    compiled = [(cost, times) for (cost, _), (_, times) in zip(pairs, compiled, strict=True)]
    eager = [(cost, times) for (_, cost), (_, times) in zip(pairs, eager, strict=True)]
    for card, host in itertools.product(_CARD, _HOST):
        apart = _LAUNCH_COSTS
        low = min(low, _us(eager, card, host / apart, -1.0) / _us(compiled, card, host * apart, 1.0))
        high = max(high, _us(eager, card, host * apart, 1.0) / _us(compiled, card, host / apart, -1.0))
    assert call.eager is not None
    speedup = call.eager.us / call.compiled.us
    low, high = round(low / _SIDES, 2), round(high * _SIDES, 2)
    return replace(call, speedup=round(speedup, 2), speedup_low=low, speedup_high=high)


def _both_alike(one: _Cost, other: _Cost) -> tuple[_Cost, _Cost]:
    """Two sides of a graph, of which the library calls that both make are taken for exact."""
    left, same = list(other.library), []
    for call in one.library:
        match = next((there for there in left if abs(there.us - call.us) <= _ALIKE * call.us), None)
        if match is not None:
            left.remove(match)
            same.append((call, match))
    return one.without_errors_of(call for call, _ in same), other.without_errors_of(call for _, call in same)


def _rounded(us: float) -> float:
    return round(us, 2)
