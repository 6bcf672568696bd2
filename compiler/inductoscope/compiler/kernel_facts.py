"""What is known of measured kernels otherwise: the card's ceilings, and a run that only lowers the same program.

Everything here is beside the benchmark: where something of it fails, the figures stay and a note says what is missing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

from inductoscope.compiler import assembling, measured_kernels
from inductoscope.compiler.bench import processor
from inductoscope.compiler.card import figures
from inductoscope.compiler.compat import card as compat
from inductoscope.protocol.bench import Passes
from inductoscope.protocol.own_devices import OwnDevice
from inductoscope.protocol.report import Kernel, Phase, TargetReport

logger = logging.getLogger(__name__)

_CUDA = "cuda"


def added(report: TargetReport, lowered: Callable[[], TargetReport]) -> TargetReport:
    """The report of a benchmark with what `lowered()`, a run of the same program, and the card say of its kernels."""
    benchmark = report.benchmark
    if benchmark is None or benchmark.kernels is None:
        return report
    own = _card(report.device)
    known, note = _known(lowered, own, benchmark.passes)
    on = measured_kernels.card(own) if own is not None else measured_kernels.Card(None, processor.ceilings())
    times = measured_kernels.joined(benchmark.kernels, known, on)
    kernels = measured_kernels.with_measured(known, times, benchmark.where)
    return replace(
        report,
        benchmark=replace(benchmark, kernels=replace(times, note=times.note or note)),
        kernels=tuple(kernel for kernel in kernels if kernel.measured is not None),
    )


def _known(
    lowered: Callable[[], TargetReport], own: OwnDevice | None, passes: Passes
) -> tuple[tuple[Kernel, ...], str | None]:
    """The kernels as lowering tells them, with predicted times where the device is a GPU; or why there are none."""
    try:
        report = lowered()
        if own is not None:
            report = assembling.predicted(report, own.device)
    except Exception as error:
        logger.warning("the kernels of the measured program could not be looked up", exc_info=True)
        return (), f"Lines, traffic and predictions are missing: lowering the program ended in {type(error).__name__}."
    kept = report.kernels if passes is Passes.BOTH else tuple(k for k in report.kernels if k.phase is Phase.FORWARD)
    return kept, None


def _card(device: str) -> OwnDevice | None:
    if not device.startswith(_CUDA) or not compat.available():
        return None
    try:
        return figures.read()
    except Exception:  # a driver can fail in any way
        logger.warning("the card could not be read", exc_info=True)
        return None
