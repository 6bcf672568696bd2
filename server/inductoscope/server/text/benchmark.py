"""A benchmark as text: both sides with their spread, what compiling cost, and whether the results agree."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType

from inductoscope.protocol.report import Agreement, Benchmark, Numerics, Timing
from inductoscope.server import words
from inductoscope.server.text.blocks import paragraph

_AGREEMENT = {
    Agreement.IDENTICAL: "results: identical to eager, bit for bit",
    Agreement.CLOSE: "results: apart from eager by rounding only",
    Agreement.DIFFERS: "results: different from eager",
    Agreement.UNKNOWN: "results: could not be compared",
}


def benchmark(result: Benchmark) -> Iterator[RenderableType]:
    """All that was measured; of one that was refused, why."""
    yield paragraph(words.benchmark(result), "bold", 2)
    if result.refused is not None:
        return
    for line in _facts(result):
        yield paragraph(line)
    yield paragraph(f"measured: {result.method}", "dim")


def _facts(result: Benchmark) -> Iterator[str]:
    if result.eager is not None and result.compiled is not None:
        yield f"eager:    {_timing(result.eager)}"
        yield f"compiled: {_timing(result.compiled)}"
    if result.speedup is not None and result.speedup_low is not None and result.speedup_high is not None:
        yield f"speed-up: {result.speedup:.2f}x (middle half of the rounds: {_range(result)})"
    if result.compile_ms is not None:
        calls = result.calls_to_pay_off
        pays = f"pays off after {words.count(calls, 'call')}" if calls is not None else "never pays off"
        yield f"first call of the compiled program: {words.duration(result.compile_ms * 1000)}; {pays}"
    if result.graphs is not None:
        breaks = f", {words.count(result.graph_breaks, 'break')}" if result.graph_breaks is not None else ""
        yield f"compiled into {words.count(result.graphs, 'graph')}{breaks}"
    if result.eager_launches is not None and result.compiled_launches is not None:
        yield f"kernel launches a call: {result.eager_launches} eager, {result.compiled_launches} compiled"
    if result.eager_peak_bytes is not None and result.compiled_peak_bytes is not None:
        eager, compiled = words.size(result.eager_peak_bytes), words.size(result.compiled_peak_bytes)
        yield f"peak device memory: {eager} eager, {compiled} compiled"
    if result.numerics is not None:
        yield _numerics(result.numerics)


def _timing(timing: Timing) -> str:
    return f"{words.duration(timing.us)} a call (spread {words.duration(timing.iqr_us)}, {timing.runs} runs)"


def _range(result: Benchmark) -> str:
    return f"{result.speedup_low:.2f} to {result.speedup_high:.2f}"


def _numerics(numerics: Numerics) -> str:
    parts = [_AGREEMENT[numerics.agreement]]
    if numerics.max_abs_error is not None and numerics.agreement is not Agreement.IDENTICAL:
        parts.append(f"largest difference {numerics.max_abs_error:.3g}")
    if numerics.eager_float64_error is not None and numerics.compiled_float64_error is not None:
        eager, compiled = numerics.eager_float64_error, numerics.compiled_float64_error
        parts.append(f"against float64: eager {eager:.2g}, compiled {compiled:.2g} (relative)")
    if numerics.note is not None:
        parts.append(numerics.note)
    return "; ".join(parts)
