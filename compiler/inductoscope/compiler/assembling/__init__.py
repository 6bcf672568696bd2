"""Kernels of a simulated GPU: predicted times, and after assembling what a thread block needs there.

Says which kernels are assembled in which order, and puts what they became into the report.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from inductoscope.compiler import resource_findings
from inductoscope.compiler.assembling import pool, recorded
from inductoscope.compiler.card.replay import Replay
from inductoscope.compiler.predict import predict, whole
from inductoscope.compiler.predict.whole import GraphCall
from inductoscope.compiler.teller import Teller
from inductoscope.protocol.devices import Device
from inductoscope.protocol.kernel_store import KernelStore
from inductoscope.protocol.messages import Assembling
from inductoscope.protocol.report import (
    ConfigFact,
    Kernel,
    KernelLanguage,
    Phase,
    Resources,
    Rung,
    TargetReport,
)

if TYPE_CHECKING:
    from inductoscope.compiler.assembling.maker import Made

KERNEL_TIMEOUT_S = 120.0
"""How long all configurations of one kernel may take together: a hundred times what an ordinary one takes."""


def predicted(report: TargetReport, device: Device, graphs: Sequence[GraphCall] = ()) -> TargetReport:
    """The report with a predicted time for each kernel and for whole calls, as far as there is a model for it."""
    kernels = tuple(_predicted(kernel, device) for kernel in report.kernels)
    replay = whole.Replay.AS_ONE if report.cudagraphs.status == "on" else whole.Replay.SINGLY
    return replace(report, kernels=kernels, predicted_calls=whole.calls(kernels, graphs, device, replay))


def assembled(
    report: TargetReport, device: Device, teller: Teller, how: Assembling, replay: Replay | None = None
) -> TargetReport:
    """The report with the configurations and resources of its Triton kernels, each source assembled once.

    The likely configuration is the one that `replay` has from the card, else the first that could be launched.

    Tells the report as far as it is after the kernels that somebody looks at, and after those of the forward pass.
    """
    with teller.phase("assemble", Rung.ASSEMBLE, "assembling kernels"):
        done = _Assembly(report, device, teller, how, replay or Replay()).run()
    return replace(
        done,
        rung=Rung.ASSEMBLE,
        findings=(*report.findings, *resource_findings.of_kernels(done.kernels)),
    )


@dataclass(frozen=True)
class _Job:
    """A source, and how soon somebody wants to know of it: 0 it is looked at, 1 forward, 2 backward."""

    source: str
    urgency: int


class _Assembly:
    """The kernels of one report on their way."""

    def __init__(self, report: TargetReport, device: Device, teller: Teller, how: Assembling, replay: Replay) -> None:
        from inductoscope.compiler.assembling.keys import toolchain  # they need Triton, which not everybody has
        from inductoscope.compiler.assembling.maker import Maker

        self._report, self._device, self._teller, self._how = report, device, teller, how
        self._compiler = toolchain(device)
        self._store = KernelStore(Path(how.store)) if how.store is not None else None
        self._maker = Maker(device, self._compiler, self._store)
        self._made: dict[str, Made] = {}
        self._replay = replay

    def run(self) -> TargetReport:
        """Find or make them all."""
        jobs = _in_order(self._report, self._how)
        found = {job.source: self._maker.found(job.source) for job in jobs}
        self._made = {source: made for source, made in found.items() if made is not None}
        left = [job for job in jobs if job.source not in self._made]
        if left:
            self._make(left)
            if self._store is not None:
                self._store.trim(self._how.store_bytes)
        merged = self._merged()
        return replace(merged, notes=(*merged.notes, *self._notes()), assembler=self._compiler.known)

    def _make(self, jobs: list[_Job]) -> None:
        """Compile the kernels of `jobs`; the report is told each time that the last one of an urgency is done."""
        from inductoscope.compiler.assembling.maker import Made

        missing = Counter(job.urgency for job in jobs)
        sources, all_of_them = [job.source for job in jobs], len(jobs)
        for number, done in enumerate(pool.run(sources, self._maker.make, self._how.processes, KERNEL_TIMEOUT_S), 1):
            result, job = done.result, jobs[done.index]
            if isinstance(result, pool.Lost):
                result = Made(problem=f"Assembling this kernel {result.why}.")
            self._made[job.source] = result
            missing[job.urgency] -= 1
            if number < all_of_them:
                self._teller.progress(Rung.ASSEMBLE, f"assembling kernels, {number} of {all_of_them} done")
                if missing[job.urgency] == 0:
                    self._teller.rung_done(self._merged())

    def _merged(self) -> TargetReport:
        """The report with what is known of its kernels by now."""
        kernels = (
            _with(kernel, self._made[kernel.source], self._replay) if kernel.source in self._made else kernel
            for kernel in self._report.kernels
        )
        return replace(self._report, kernels=tuple(kernels))

    def _notes(self) -> Iterator[str]:
        """What is missing, and why."""
        made = self._made.values()
        unkept = next((one.unkept for one in made if one.unkept is not None), None)
        if unkept is not None:
            yield (
                f"The texts that the compiler made of the kernels could not be kept in {self._how.store}: {unkept}. "
                "Registers and the like are known all the same."
            )
        problems = [one.problem for one in made if one.problem is not None]
        if problems:
            yield f"{len(problems)} of {len(made)} kernels could not be assembled. The first: {problems[0]}"
        if made and not self._device.is_amd and self._compiler.known.disassembler is None:
            yield "There is no SASS text: this installation of Triton has no nvdisasm that can be run."


def _in_order(report: TargetReport, how: Assembling) -> list[_Job]:
    """Each different source once, in the order of launches among the equally urgent."""
    urgencies: dict[str, int] = {}
    for kernel in report.kernels:
        if kernel.source is not None and _is_triton(kernel):
            urgency = _urgency(kernel, how)
            urgencies[kernel.source] = min(urgency, urgencies.get(kernel.source, urgency))
    return sorted((_Job(source, urgency) for source, urgency in urgencies.items()), key=lambda job: job.urgency)


def _urgency(kernel: Kernel, how: Assembling) -> int:
    places = {(place.file, place.line) for place in kernel.lines}
    if (how.kernel is not None and how.kernel in kernel.name) or (
        how.file is not None and (how.file, how.line) in places
    ):
        return 0
    return 1 if kernel.phase is Phase.FORWARD else 2


def _is_triton(kernel: Kernel) -> bool:
    return kernel.language is KernelLanguage.TRITON and kernel.source is not None


def _predicted(kernel: Kernel, device: Device) -> Kernel:
    return kernel if kernel.language is KernelLanguage.CPP else replace(kernel, predicted=predict(kernel, device))


def _with(kernel: Kernel, made: Made, replay: Replay) -> Kernel:
    configs, note = recorded.configs(made.configs, kernel.source or "", replay)
    likely = next((config for config in configs if config.likely), None)
    return replace(
        kernel,
        configs=configs,
        stored=made.stored,
        resources=_resources(likely) if likely is not None else None,
        note=" ".join(filter(None, (kernel.note, made.problem, note))) or None,
    )


def _resources(config: ConfigFact) -> Resources | None:
    if config.registers is None or config.shared_bytes is None:
        return None
    return Resources(config.registers, config.spills or 0, config.shared_bytes, config.occupancy, config.limited_by)
