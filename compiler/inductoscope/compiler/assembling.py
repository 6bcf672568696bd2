"""The rung `assemble`: Triton kernels to machine code for the simulated GPU, for what a thread block needs there."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from inductoscope.compiler.failures import line_span
from inductoscope.compiler.simgpu.assemble import Assembled, AssembleError, assemble
from inductoscope.compiler.teller import Teller
from inductoscope.protocol.codes import CODES
from inductoscope.protocol.devices import Device
from inductoscope.protocol.report import Finding, Kernel, KernelLanguage, Resources, Rung, TargetReport

SPILLS_THAT_COST = 16
"""Inductor's autotuner skips configurations that spill more 32-bit registers a thread; a single `sin` spills 8."""


@dataclass(frozen=True)
class _Outcome:
    """What became of one source: the configuration that is expected to win, or why there is none."""

    chosen: Assembled | None = None
    problem: str | None = None


def assembled(report: TargetReport, device: Device, teller: Teller) -> TargetReport:
    """The report with the resources of its Triton kernels, each source assembled once."""
    sources = list(dict.fromkeys(kernel.source for kernel in report.kernels if _can_assemble(kernel)))
    outcomes: dict[str | None, _Outcome] = {}
    with teller.phase("assemble", Rung.ASSEMBLE, "assembling kernels"):
        for number, source in enumerate(sources, 1):
            teller.progress(Rung.ASSEMBLE, f"assembling kernel {number} of {len(sources)}")
            outcomes[source] = _assemble(str(source), device)
    kernels = tuple(_with(kernel, outcomes.get(kernel.source)) for kernel in report.kernels)
    return replace(
        report,
        rung=Rung.ASSEMBLE,
        kernels=kernels,
        phases=(*report.phases, teller.phases[-1]),
        findings=(*report.findings, *_spills(kernels)),
    )


def _can_assemble(kernel: Kernel) -> bool:
    return kernel.language is KernelLanguage.TRITON and kernel.source is not None


def _assemble(source: str, device: Device) -> _Outcome:
    try:
        configs = assemble(source, device)
    except AssembleError as error:
        return _Outcome(problem=str(error))
    return _Outcome(chosen=next((config for config in configs if config.rejected is None), configs[0]))


def _with(kernel: Kernel, outcome: _Outcome | None) -> Kernel:
    if outcome is None or not _can_assemble(kernel):
        return kernel
    if outcome.chosen is None:
        return replace(kernel, note=" ".join(filter(None, (kernel.note, outcome.problem))))
    chosen = outcome.chosen
    if chosen.registers is None:
        return kernel
    fits = chosen.occupancy
    resources = Resources(
        registers=chosen.registers,
        spills=chosen.spills or 0,
        shared_bytes=chosen.shared_bytes,
        occupancy=fits.fraction if fits is not None else None,
        limited_by=fits.limited_by.value if fits is not None and fits.limited_by is not None else None,
    )
    return replace(kernel, resources=resources)


def _spills(kernels: Iterable[Kernel]) -> tuple[Finding, ...]:
    """A finding for each kernel whose best configuration spills so much that it costs time."""
    found: dict[str, Finding] = {}
    for kernel in kernels:
        resources = kernel.resources
        if resources is None or resources.spills <= SPILLS_THAT_COST or not kernel.lines:
            continue
        place = kernel.lines[0]
        span = line_span(place.file, place.line)
        found[kernel.name] = Finding(
            code="register-spill",
            severity=CODES["register-spill"].severity,
            file=place.file,
            line=place.line,
            column=span.column,
            end_line=place.line,
            end_column=span.end_column,
            message=(
                f"The kernel {kernel.name} needs more registers than a thread has: {resources.spills} of them live in "
                f"slow memory, beside {resources.registers} in use. Fewer values alive at a time (a smaller head or "
                "row, a split kernel) would help."
            ),
            rung=Rung.ASSEMBLE,
            function=place.function,
        )
    return tuple(found.values())
