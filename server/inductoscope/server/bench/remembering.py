"""What was measured becomes part of the history, and learns what became of the result before it."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from pathlib import Path

from inductoscope.protocol.report import Benchmark, TargetReport
from inductoscope.server.bench import history, noise, revision
from inductoscope.server.bench.history import HistoryError

logger = logging.getLogger("inductoscope.bench")


async def remembered(report: TargetReport, torch: str | None) -> TargetReport:
    """The report with what became of the last result of the same kind; it is then part of the history itself."""
    if report.benchmark is None or report.benchmark.refused is not None:
        return report
    state = await revision.state(Path(report.file))
    return await asyncio.to_thread(_remembered, report, state, torch)


def _remembered(report: TargetReport, state: str | None, torch: str | None) -> TargetReport:
    kept = history.of_workspace(Path(report.file))

    def changed(benchmark: Benchmark) -> Benchmark:
        before = kept.last(report, benchmark)
        if before is None:
            return benchmark
        return replace(benchmark, change=noise.change(before.benchmark, benchmark, before.taken))

    try:
        found = replace(
            report,
            benchmark=changed(report.benchmark) if report.benchmark is not None else None,
            benchmarks=tuple(map(changed, report.benchmarks)),
        )
        kept.add(report, state, torch)
    except HistoryError as error:
        logger.warning("%s", error)
        return replace(report, notes=(*report.notes, str(error)))
    return found
