"""What an assembled kernel needs of a multiprocessor, as findings: only where it plausibly costs time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from inductoscope.compiler.marks import finding_at
from inductoscope.protocol.report import Finding, Kernel, Resources, Rung

SPILLS_THAT_COST = 16
"""Inductor's autotuner skips configurations that spill more 32-bit registers a thread; a single `sin` spills 8."""

OCCUPANCY_THAT_COSTS = 0.25
"""Fewer warps than this share cannot hide the latency of memory; templates with large tiles are meant to have few."""

US_WORTH_A_WORD = 20.0
"""Below this predicted time, in microseconds, a kernel is mostly its launch, whatever its occupancy."""


def of_kernels(kernels: Iterable[Kernel]) -> tuple[Finding, ...]:
    """The findings, one a kernel and sort."""
    found: dict[tuple[str, str], Finding] = {}
    for kernel in kernels:
        for finding in _of_kernel(kernel):
            found.setdefault((kernel.name, finding.code), finding)
    return tuple(found.values())


def _of_kernel(kernel: Kernel) -> Iterator[Finding]:
    if kernel.resources is None or not kernel.lines:
        return
    if kernel.resources.spills > SPILLS_THAT_COST:
        yield finding_at("register-spill", kernel.lines[0], _spill(kernel.name, kernel.resources), Rung.ASSEMBLE)
    occupancy, predicted = kernel.resources.occupancy, kernel.predicted
    if occupancy is None or predicted is None or "tl.dot" in (kernel.source or ""):
        return
    if occupancy < OCCUPANCY_THAT_COSTS and predicted.us > US_WORTH_A_WORD:
        message = _few_warps(kernel.name, occupancy, kernel.resources)
        yield finding_at("low-occupancy", kernel.lines[0], message, Rung.ASSEMBLE)


def _spill(name: str, resources: Resources) -> str:
    return (
        f"The kernel {name} needs more registers than a thread has: {resources.spills} values live in slow memory, "
        f"beside {resources.registers} registers in use. Fewer values alive at a time (shorter rows, a split kernel) "
        "would help."
    )


def _few_warps(name: str, occupancy: float, resources: Resources) -> str:
    limit = f", limited by {resources.limited_by}" if resources.limited_by else ""
    return (
        f"Only {occupancy:.0%} of the warps that a multiprocessor can hold run the kernel {name} at a time{limit}, "
        f"with {resources.registers} registers a thread and {resources.shared_bytes} bytes of shared memory a block."
    )
