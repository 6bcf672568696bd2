"""Two records side by side: which kernels, wrappers, library calls, values and times are the same.

Pure functions of the records.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from fidelity_tools.record import KernelRecord, LibraryCall, ProgramRecord

CLOSE = 1e-3
"""Looked-at numbers count as equal within this relative difference: a card sums in another order than a CPU."""


@dataclass(frozen=True)
class Difference:
    """What differs in one program."""

    program: str
    what: tuple[str, ...]


@dataclass(frozen=True)
class Verdict:
    """Counts as (same, all); `differences` names every program that is not the same in full."""

    programs: tuple[int, int]
    kernels: tuple[int, int]
    wrappers: tuple[int, int]
    calls: tuple[int, int]
    values: tuple[int, int]
    resources: tuple[int, int]
    only_one_side: tuple[str, ...]
    differences: tuple[Difference, ...]


def compare(first: Mapping[str, ProgramRecord], second: Mapping[str, ProgramRecord]) -> Verdict:
    """`first` is what counts; programs on one side only are named and not judged."""
    both = [name for name in first if name in second]
    parts = [_of(name, first[name], second[name]) for name in both]
    return Verdict(
        programs=(sum(not part.what for part in parts), len(parts)),
        kernels=_sum(part.kernels for part in parts),
        wrappers=_sum(part.wrappers for part in parts),
        calls=_sum(part.calls for part in parts),
        values=_sum(part.values for part in parts),
        resources=_sum(part.resources for part in parts),
        only_one_side=tuple(sorted(set(first) ^ set(second))),
        differences=tuple(Difference(part.name, part.what) for part in parts if part.what),
    )


@dataclass(frozen=True)
class _Part:
    name: str
    kernels: tuple[int, int]
    wrappers: tuple[int, int]
    calls: tuple[int, int]
    values: tuple[int, int]
    resources: tuple[int, int]
    what: tuple[str, ...]


def _of(name: str, one: ProgramRecord, other: ProgramRecord) -> _Part:
    names = {kernel.sha256: kernel.name for side in (one, other) for kernel in side.kernels}
    ours, theirs = ({kernel.sha256 for kernel in side.kernels} for side in (one, other))
    paired = list(zip(one.wrappers, other.wrappers, strict=False))
    wrappers = sum(a == b for a, b in paired), max(len(one.wrappers), len(other.wrappers))
    called = list(zip(one.calls, other.calls, strict=False))
    calls = sum(a == b for a, b in called), max(len(one.calls), len(other.calls))
    looked = max(len(one.looked), len(other.looked))
    values = sum(_close(a, b) for a, b in zip(one.looked, other.looked, strict=False)), looked
    what = []
    if one.error or other.error:
        what.append(f"error: {one.error or other.error}")
    if ours != theirs:
        changed = sorted({names[text] for text in ours ^ theirs})
        what.append(f"{len(ours & theirs)} of {len(ours)} kernels: {', '.join(changed[:4])}")
    what += [
        f"{same} of {total} {label}"
        for label, (same, total) in (("wrappers", wrappers), ("wrappers' library calls", calls), ("values", values))
        if same != total
    ]
    kernels = len(ours & theirs), len(ours | theirs)
    return _Part(name, kernels, wrappers, calls, values, _resources(one.kernels, other.kernels), tuple(what))


def _resources(real: Iterable[KernelRecord], built: Iterable[KernelRecord]) -> tuple[int, int]:
    """How often the configuration that won on the card needs what the one built without a card does."""
    by_hash = {kernel.sha256: kernel.assembled for kernel in built}
    same = total = 0
    for kernel in real:
        timed, candidates = kernel.timed, by_hash.get(kernel.sha256, ())
        if timed is None or not candidates:
            continue
        total += 1
        needs = (timed.config, timed.registers, timed.spills, timed.shared_bytes)
        same += any((one.config, one.registers, one.spills, one.shared_bytes) == needs for one in candidates)
    return same, total


def _sum(pairs: Iterable[tuple[int, int]]) -> tuple[int, int]:
    same = total = 0
    for one, other in pairs:
        same, total = same + one, total + other
    return same, total


def _close(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=CLOSE, abs_tol=1e-5)


@dataclass(frozen=True)
class Accuracy:
    """How far predicted times are from measured ones: quantiles of predicted over measured, and shares within."""

    count: int
    p10: float
    median: float
    p90: float
    within_1_25: float
    within_1_5: float
    within_2: float


def accuracy(pairs: Iterable[tuple[float, float]]) -> Accuracy | None:
    """Of (predicted, measured) pairs; None where there are none."""
    ratios = sorted(predicted / measured for predicted, measured in pairs if measured > 0 and predicted > 0)
    if not ratios:
        return None

    def at(share: float) -> float:
        return ratios[min(len(ratios) - 1, int(share * len(ratios)))]

    def within(factor: float) -> float:
        return sum(1 / factor <= ratio <= factor for ratio in ratios) / len(ratios)

    return Accuracy(len(ratios), at(0.1), at(0.5), at(0.9), within(1.25), within(1.5), within(2.0))


def kernel_times(real: Mapping[str, ProgramRecord], other: Mapping[str, ProgramRecord]) -> list[tuple[float, float]]:
    """(predicted, measured) for every different kernel text that both sides have."""
    measured = {k.sha256: k.timed.us for record in real.values() for k in record.kernels if k.timed}
    predicted = {k.sha256: k.predicted_us for record in other.values() for k in record.kernels if k.predicted_us}
    return [(predicted[text], us) for text, us in measured.items() if text in predicted]


_STRIDES = re.compile(r":\[[^\]]*\]$")
_COMPARED = {"convolution": 2}  # Inductor adds the bias by itself


def library_times(real: Mapping[str, ProgramRecord], other: Mapping[str, ProgramRecord]) -> list[tuple[float, float]]:
    """(predicted, measured) for every different library call of the same program that both sides have."""
    measured = {(name, form(call)): call.us for name, one in real.items() for call in one.library if call.us}
    predicted = {
        (name, form(call)): call.predicted_us
        for name, one in other.items()
        for call in one.library
        if call.predicted_us
    }
    calls = {key[1]: (predicted[key], us) for key, us in measured.items() if key in predicted}
    return list(calls.values())


def form(call: LibraryCall) -> tuple[str, ...]:
    """The operator and the tensors that decide its time, strides left out."""
    tensors = [_STRIDES.sub("", argument) for argument in call.args if "[" in argument]
    return (call.op, *tensors[: _COMPARED.get(call.op, 3)])
