"""What a sweep measures: one point for each combination of target, inputs, mode and device.  Runs nothing."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

from inductoscope.protocol import devices, input_spec
from inductoscope.protocol.bench import BenchOptions
from inductoscope.protocol.devices import DeviceKind, UnknownDeviceError
from inductoscope.protocol.messages import Run, Target
from inductoscope.protocol.report import Rung
from inductoscope.server.planning import CheckError, Job


@dataclass(frozen=True)
class Where:
    """A device as Ray places it: `cpu`, or `cuda` on any GPU or on one of Ray's accelerator types (`H200`)."""

    device: str
    accelerator: str | None = None

    @property
    def gpus(self) -> int:
        """How many GPUs a task needs."""
        return 0 if self.device == DeviceKind.CPU.value else 1

    @property
    def text(self) -> str:
        """As the command line has it."""
        return self.device if self.accelerator is None else f"{self.device}:{self.accelerator}"


@dataclass(frozen=True)
class Point:
    """One measurement: a job with other inputs and another mode where these are not None."""

    job: Job
    where: Where
    mode: str | None = None
    inputs: str | None = None

    @property
    def target(self) -> Target:
        """The target, with the inputs of this point."""
        return self.job.target if self.inputs is None else replace(self.job.target, comment=self.inputs)

    @property
    def text(self) -> str:
        """What people call the point."""
        parts = (self.job.target.name, self.inputs, self.mode, f"on {self.where.text}")
        return ", ".join(part for part in parts if part is not None)

    def request(self, bench: BenchOptions, seconds: float) -> Run:
        """What the worker is asked for."""
        return Run(
            run_id=1,
            target=self.target,
            device=self.where.device,
            rung=Rung.MEASURE,
            search_paths=self.job.settings.paths,
            bench_seconds=seconds,
            bench=replace(bench, mode=self.mode),
        )


def points(
    jobs: Sequence[Job], inputs: Sequence[str], modes: Sequence[str | None], wheres: Sequence[Where]
) -> tuple[Point, ...]:
    """All combinations; a target without inputs of its own needs some of `inputs`.  Raises `CheckError`."""
    for text in inputs:
        try:
            input_spec.parse(text)
        except input_spec.InputSpecError as error:
            raise CheckError(f"--inputs {text!r} cannot be read: {error}.") from None
    ready = [job for job in jobs if inputs or job.scanned.inputs is not None]
    combined = itertools.product(ready, inputs or (None,), modes, wheres)
    return tuple(Point(job, where, mode, text) for job, text, mode, where in combined)


def where_of(text: str) -> Where:
    """`cpu`, `cuda`, or `cuda:TYPE` with one of Ray's accelerator types.  Raises `CheckError`."""
    kind, _, accelerator = text.strip().partition(":")
    try:
        parsed = devices.parse(kind)
    except UnknownDeviceError as error:
        raise CheckError(f"--devices: {error}") from None
    if parsed.kind not in (DeviceKind.CPU, DeviceKind.CUDA) or (accelerator and parsed.kind is DeviceKind.CPU):
        raise CheckError(f"--devices {text}: only cpu, cuda and cuda:TYPE (a Ray accelerator type) can be measured on.")
    return Where(parsed.text, accelerator or None)
