"""Kernels of a simulated GPU: predicted times, and after assembling what a thread block needs there."""

from __future__ import annotations

from dataclasses import dataclass, replace

from inductoscope.compiler import resource_findings
from inductoscope.compiler.predict import predict
from inductoscope.compiler.simgpu import Assembled, AssembleError, assemble
from inductoscope.compiler.teller import Teller
from inductoscope.protocol.devices import Device
from inductoscope.protocol.report import Kernel, KernelLanguage, Resources, Rung, TargetReport


@dataclass(frozen=True)
class _Outcome:
    """What became of one source: the configuration that is expected to win, or why there is none."""

    chosen: Assembled | None = None
    problem: str | None = None


def predicted(report: TargetReport, device: Device) -> TargetReport:
    """The report with a predicted time for each generated kernel; the model was not made for library calls."""
    return replace(report, kernels=tuple(_predicted(kernel, device) for kernel in report.kernels))


def assembled(report: TargetReport, device: Device, teller: Teller) -> TargetReport:
    """The report with the resources of its Triton kernels, each source assembled once."""
    sources = list(dict.fromkeys(kernel.source for kernel in report.kernels if _is_triton(kernel)))
    outcomes: dict[str | None, _Outcome] = {}
    with teller.phase("assemble", Rung.ASSEMBLE, "assembling kernels"):
        for number, source in enumerate(sources, 1):
            teller.progress(Rung.ASSEMBLE, f"assembling kernel {number} of {len(sources)}")
            outcomes[source] = _assemble(str(source), device)
    kernels = [_with(kernel, outcomes[kernel.source]) if _is_triton(kernel) else kernel for kernel in report.kernels]
    done = predicted(replace(report, rung=Rung.ASSEMBLE, kernels=tuple(kernels)), device)
    return replace(
        done,
        findings=(*report.findings, *resource_findings.of_kernels(done.kernels)),
    )


def _is_triton(kernel: Kernel) -> bool:
    return kernel.language is KernelLanguage.TRITON and kernel.source is not None


def _predicted(kernel: Kernel, device: Device) -> Kernel:
    return replace(kernel, predicted=predict(kernel, device)) if _is_triton(kernel) else kernel


def _assemble(source: str, device: Device) -> _Outcome:
    try:
        configs = assemble(source, device)
    except AssembleError as error:
        return _Outcome(problem=str(error))
    return _Outcome(chosen=next((config for config in configs if config.rejected is None), configs[0]))


def _with(kernel: Kernel, outcome: _Outcome) -> Kernel:
    chosen = outcome.chosen
    if chosen is None:
        return replace(kernel, note=" ".join(filter(None, (kernel.note, outcome.problem))))
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
