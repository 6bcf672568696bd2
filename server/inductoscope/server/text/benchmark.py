"""A benchmark as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType

from inductoscope.protocol.report import Benchmark, TargetReport
from inductoscope.server import words
from inductoscope.server.bench import sentences
from inductoscope.server.text.blocks import paragraph


def benchmarks(report: TargetReport) -> Iterator[RenderableType]:
    """All benchmarks of a target, one a set of inputs."""
    if report.benchmark is not None:
        yield from benchmark(report.benchmark)
    for one in report.benchmarks:
        yield from benchmark(one)


def benchmark(result: Benchmark) -> Iterator[RenderableType]:
    """All that was measured; of one that was refused, why."""
    yield paragraph(words.benchmark(result), "bold", 2)
    if result.compiled is None:
        return
    for line in sentences.facts(result):
        yield paragraph(line.strip(), indent=6 if line.startswith(" ") else 4)
    if result.change is not None:
        yield paragraph(sentences.changed(result.change), "bold")
    yield paragraph(f"measured: {result.method}", "dim")
    for condition in result.conditions:
        yield paragraph(f"meanwhile: {condition}", "dim")
