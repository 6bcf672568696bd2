"""Measured kernels beside what is known of them otherwise: their lines, traffic, prediction, and the card's ceilings.

Joins by name the profiler's account of the compiled call and the report of a run that only lowered the same program.
Knows values only; runs nothing.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from inductoscope.compiler.occupancy import occupancy
from inductoscope.protocol.bench import Bound, Ceilings, KernelTime, KernelTimes
from inductoscope.protocol.devices import Limits
from inductoscope.protocol.own_devices import OwnDevice
from inductoscope.protocol.report import Kernel, KernelLanguage, Measured

_NEAR = 0.4
"""A kernel that reaches this part of a ceiling is bound by it; one that reaches neither is bound by latency."""


@dataclass(frozen=True)
class Card:
    """What is known of the device: figures to reckon with, null for a CPU, and what it reached itself."""

    limits: Limits | None
    ceilings: Ceilings


def card(own: OwnDevice) -> Card:
    """The card as it was read and timed."""
    measured = {one.what: one for one in own.recording.measured} if own.recording is not None else {}
    copied, multiplied = measured.get("copy"), measured.get("matmul")
    method = "; ".join(one.method for one in (copied, multiplied) if one is not None)
    ceilings = Ceilings(copied.value if copied else None, multiplied.value if multiplied else None, method)
    return Card(own.device.limits, ceilings)


def joined(times: KernelTimes, known: Sequence[Kernel], on: Card) -> KernelTimes:
    """The account with all that is known of its kernels."""
    by_name: dict[str, list[Kernel]] = defaultdict(list)
    for kernel in known:
        by_name[_key(kernel)].append(kernel)
    sharing = Counter(time.operator for time in times.kernels)

    def known_of(time: KernelTime) -> Sequence[Kernel]:
        if time.name in by_name:
            return by_name[time.name]
        # Several kernels of one operator: which of its calls each computes is not known, unless all are alike.
        calls = by_name.get(time.operator or "", [])
        return calls if sharing[time.operator] == 1 or _alike(calls) else ()

    kernels = tuple(_completed(time, known_of(time), on) for time in times.kernels)
    return replace(times, kernels=kernels, ceilings=on.ceilings)


def with_measured(known: Iterable[Kernel], times: KernelTimes, where: str) -> tuple[Kernel, ...]:
    """The kernels of a report with their measured times, where the profiler knows them by the same name."""
    by_name = {time.operator or time.name: time for time in reversed(times.kernels)}
    by_name.update((time.name, time) for time in times.kernels)
    found = ((kernel, by_name.get(_key(kernel))) for kernel in known)
    return tuple(
        kernel if time is None else replace(kernel, measured=_measured(time, times, where)) for kernel, time in found
    )


def _alike(calls: Sequence[Kernel]) -> bool:
    """Whether all calls are of one line and have the same operands."""
    return len({(call.lines, call.operands, call.bytes_read, call.flops) for call in calls}) == 1


def _key(kernel: Kernel) -> str:
    """The name that the profiler has for a kernel; for a library call that of the operator that it computes."""
    if kernel.language is not KernelLanguage.EXTERN:
        return kernel.name
    return f"aten::{kernel.name.partition('(')[0].rpartition('.')[2]}"


def _measured(time: KernelTime, times: KernelTimes, where: str) -> Measured:
    return Measured(time.us, time.iqr_us, time.runs, where, times.method)


def _completed(time: KernelTime, known: Sequence[Kernel], on: Card) -> KernelTime:
    """One name may be launched with several sizes: traffic and prediction are then means over its launches."""
    time = _with_occupancy(time, on)
    if not known:
        return time
    first = known[0]
    place = first.lines[0] if first.lines else None
    predicted = [kernel.predicted for kernel in known if kernel.predicted is not None]
    ranges = [(one.low_us, one.high_us) for one in predicted if one.low_us is not None and one.high_us is not None]
    placed = replace(
        time,
        file=place.file if place else None,
        line=place.line if place else None,
        predicted_us=fmean(one.us for one in predicted) if predicted else None,
        predicted_low_us=fmean(low for low, _ in ranges) if ranges else None,
        predicted_high_us=fmean(high for _, high in ranges) if ranges else None,
    )
    return _with_rates(placed, known, on.ceilings)


def _with_rates(time: KernelTime, known: Sequence[Kernel], ceilings: Ceilings) -> KernelTime:
    moved = [
        kernel.bytes_read + kernel.bytes_written
        for kernel in known
        if kernel.bytes_read is not None and kernel.bytes_written is not None
    ]
    counted = [kernel.flops for kernel in known if kernel.flops is not None]
    gbps = fmean(moved) / (time.us * 1e3) if moved and time.us else None
    tflops = fmean(counted) / (time.us * 1e6) if counted and time.us else None
    shares = {
        Bound.MEMORY: _over(gbps, ceilings.copy_gbps),
        Bound.COMPUTE: _over(tflops, ceilings.matmul_tflops),
    }
    return replace(
        time,
        gbps=gbps,
        tflops=tflops,
        of_copy=shares[Bound.MEMORY],
        of_matmul=shares[Bound.COMPUTE],
        bound=_bound(shares),
    )


def _bound(shares: Mapping[Bound, float | None]) -> Bound | None:
    known = {bound: share for bound, share in shares.items() if share is not None}
    if Bound.MEMORY not in known:  # traffic is what every kernel has
        return None
    nearest = max(known, key=lambda bound: known[bound])
    return nearest if known[nearest] >= _NEAR else Bound.LATENCY


def _over(rate: float | None, ceiling: float | None) -> float | None:
    return rate / ceiling if rate is not None and ceiling else None


def _with_occupancy(time: KernelTime, on: Card) -> KernelTime:
    if on.limits is None or time.registers is None or time.num_warps is None:
        return time
    found = occupancy(on.limits, time.num_warps, time.registers, time.shared_bytes or 0)
    return replace(
        time, occupancy=found.fraction, limited_by=found.limited_by.value if found.limited_by is not None else None
    )
