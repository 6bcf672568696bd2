"""A benchmark in sentences: both sides with their spread, what compiling cost, where the time goes, do results agree.

Words alone, from the result alone; the terminal and the editor's document lay them out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from inductoscope.protocol.bench import Candidate, Change, Departure, KernelTime, KernelTimes, Passes
from inductoscope.protocol.report import Agreement, Benchmark, Numerics, OutputError, Timing
from inductoscope.server import words

_AGREEMENT = {
    Agreement.IDENTICAL: "results: identical to eager, bit for bit",
    Agreement.CLOSE: "results: apart from eager by rounding only",
    Agreement.DIFFERS: "results: different from eager",
    Agreement.UNKNOWN: "results: could not be compared",
}
_LISTED_KERNELS = 8
_LISTED_OUTPUTS = 8
_LISTED_CANDIDATES = 4
_FIRST = 3
"""How many kernels the advice on where to start names."""


def facts(result: Benchmark) -> Iterator[str]:
    """What was measured, one fact a sentence; a line that begins with blanks belongs to the one before."""
    if asked := _asked(result):
        yield asked
    yield from _facts(result)
    yield from _kernels(result.kernels)


def changed(change: Change) -> str:
    """What became of an earlier result, and whether that is more than noise."""
    factor = change.ratio if change.ratio >= 1 else 1 / change.ratio
    verb = "faster" if change.ratio >= 1 else "slower"
    times = f"{words.duration(change.before_us)} before ({change.before}), {words.duration(change.now_us)} now"
    if not change.beyond_noise:
        return f"no change beyond noise: {times} ({change.low:.2f} to {change.high:.2f} times as fast; {change.rule})"
    interval = f"{change.low:.2f} to {change.high:.2f} times as fast"
    return f"{factor:.2f}x {verb} than before: {times}; beyond noise ({interval}; {change.rule})"


def _asked(result: Benchmark) -> str:
    parts = [f"inputs {', '.join(result.inputs)}"] if result.inputs else []
    if result.mode is not None:
        parts.append(f"mode {result.mode}")
    if result.passes is Passes.BOTH:
        parts.append("forward and backward")
    return "; ".join(parts)


def _facts(result: Benchmark) -> Iterator[str]:
    if result.eager is not None and result.compiled is not None:
        yield f"eager:    {_timing(result.eager)}"
        yield f"compiled: {_timing(result.compiled)}"
    if result.speedup is not None and result.speedup_low is not None and result.speedup_high is not None:
        yield f"speed-up: {result.speedup:.2f}x (middle half of the rounds: {_range(result)}){_precision(result)}"
    if result.compile_ms is not None:
        calls = result.calls_to_pay_off
        pays = f"pays off after {words.count(calls, 'call')}" if calls is not None else "never pays off"
        yield f"first call of the compiled program: {words.duration(result.compile_ms * 1000)}; {pays}"
    if result.graphs is not None:
        breaks = f", {words.count(result.graph_breaks, 'break')}" if result.graph_breaks is not None else ""
        yield f"compiled into {words.count(result.graphs, 'graph')}{breaks}; compiled code was seen to run"
    if result.eager_launches is not None and result.compiled_launches is not None:
        yield f"kernel launches a call: {result.eager_launches} eager, {result.compiled_launches} compiled"
    yield from _host(result)
    if result.eager_peak_bytes is not None and result.compiled_peak_bytes is not None:
        eager, compiled = words.size(result.eager_peak_bytes), words.size(result.compiled_peak_bytes)
        yield f"peak device memory: {eager} eager, {compiled} compiled"
    if result.numerics is not None:
        yield _numerics(result.numerics)
        yield from _outputs(result.outputs)
    if result.departure is not None:
        yield _departure(result.departure)


def _precision(result: Benchmark) -> str:
    if result.relative_error is None or result.error_wanted is None:
        return ""
    reached = f", known to {result.relative_error:.1%}"
    return (
        reached if result.relative_error <= result.error_wanted else f"{reached}; {result.error_wanted:.0%} not reached"
    )


def _host(result: Benchmark) -> Iterator[str]:
    if result.host_us is None or result.device_us is None:
        return
    eager, compiled = words.duration(result.host_us.eager), words.duration(result.host_us.compiled)
    yield f"host time a call, until all is issued: {eager} eager, {compiled} compiled"
    eager, compiled = words.duration(result.device_us.eager), words.duration(result.device_us.compiled)
    bound = ""
    if result.host_us.compiled > result.device_us.compiled:
        bound = "; compiled, the GPU waits for the host (mode reduce-overhead replays launches)"
    yield f"time of the kernels of a call: {eager} eager, {compiled} compiled{bound}"


def _outputs(outputs: Sequence[OutputError]) -> Iterator[str]:
    """One by one where there are several, those that differ most first."""
    order = [Agreement.DIFFERS, Agreement.UNKNOWN, Agreement.CLOSE, Agreement.IDENTICAL]
    if len(outputs) < 2:
        return
    ranked = sorted(outputs, key=lambda one: (order.index(one.agreement), -(one.max_rel_error or 0)))
    for one in ranked[:_LISTED_OUTPUTS]:
        errors = f", largest difference {one.max_abs_error:.3g}" if one.max_abs_error else ""
        relative = f" (relative {one.max_rel_error:.2g})" if one.max_rel_error else ""
        note = f"; {one.note}" if one.note else ""
        yield f"  {one.name} {one.form}: {one.agreement.value}{errors}{relative}{note}"
    if len(ranked) > _LISTED_OUTPUTS:
        yield f"  and {words.count(len(ranked) - _LISTED_OUTPUTS, 'more value')}, none further apart"


def _departure(found: Departure) -> str:
    if found.node is None:
        return f"first operator that departs: none found ({found.note}; {words.count(found.tried, 'part')} compiled)"
    where = f" at {found.file}:{found.line}" if found.file is not None else ""
    error = f", relative difference {found.max_rel_error:.2g}" if found.max_rel_error is not None else ""
    return (
        f"first operator that departs: {found.operator} ({found.node}, graph {found.graph + 1}){where}{error}; "
        f"found by compiling {words.count(found.tried, 'part')} of the program"
    )


def _kernels(times: KernelTimes | None) -> Iterator[str]:
    if times is None:
        return
    if len(times.kernels) > _FIRST:
        share = sum(kernel.share for kernel in times.kernels[:_FIRST])
        names = ", ".join(_short(kernel.name) for kernel in times.kernels[:_FIRST])
        yield f"top three kernels take {share:.0%} of the time of all kernels, start here: {names}"
    elif times.kernels:
        yield "where the time of the kernels goes:"
    for kernel in times.kernels[:_LISTED_KERNELS]:
        yield f"  {_kernel(kernel)}"
        if kernel.candidates:
            yield f"    tried: {_candidates(kernel.candidates)}"
    if len(times.kernels) > _LISTED_KERNELS:
        yield f"  and {words.count(len(times.kernels) - _LISTED_KERNELS, 'more kernel')}"
    for tuned in times.tuned:
        yield f"  {tuned.operator}, algorithms tried: {_candidates(tuned.candidates)}"
    if times.ceilings.method:
        copy, product = times.ceilings.copy_gbps, times.ceilings.matmul_tflops
        reached = [f"{copy:.0f} GB/s" if copy else "", f"{product:.3g} TFLOP/s" if product else ""]
        yield f"the device itself reaches {' and '.join(filter(None, reached))} ({times.ceilings.method})"
    if times.note is not None:
        yield f"kernels: {times.note}"
    if times.kernels:
        yield f"kernels timed by {times.method}"


def _kernel(kernel: KernelTime) -> str:
    count = f" x {kernel.launches:g}" if kernel.launches != 1 else ""
    parts = [f"{kernel.share:.0%} {words.duration(kernel.us)}{count} {_short(kernel.name)}"]
    if kernel.operator is not None:
        parts.append(kernel.operator)
    if kernel.line is not None and kernel.file is not None:
        parts.append(f"line {kernel.line}")
    if kernel.predicted_us is not None:
        parts.append(f"predicted {words.duration(kernel.predicted_us)}")
    parts += _rates(kernel)
    if kernel.registers is not None:
        spills = f", {kernel.spills} spilled" if kernel.spills else ""
        parts.append(f"{kernel.registers} registers{spills}")
    if kernel.occupancy is not None:
        limit = f" (limited by {kernel.limited_by})" if kernel.limited_by else ""
        parts.append(f"occupancy {kernel.occupancy:.0%}{limit}")
    return "; ".join(parts)


def _rates(kernel: KernelTime) -> Iterator[str]:
    if kernel.gbps is not None:
        share = f" ({kernel.of_copy:.0%})" if kernel.of_copy is not None else ""
        yield f"{kernel.gbps:.0f} GB/s{share}"
    if kernel.tflops:
        share = f" ({kernel.of_matmul:.0%})" if kernel.of_matmul is not None else ""
        yield f"{kernel.tflops:.3g} TFLOP/s{share}"
    if kernel.bound is not None:
        yield f"{kernel.bound.value} bound"


def _candidates(candidates: Sequence[Candidate]) -> str:
    listed = [
        f"{one.name} {words.duration(one.us)}{' (won)' if one.chosen else ''}"
        for one in candidates[:_LISTED_CANDIDATES]
    ]
    if len(candidates) > _LISTED_CANDIDATES:
        listed.append(f"{len(candidates) - _LISTED_CANDIDATES} slower ones")
    return "; ".join(listed)


def _short(name: str) -> str:
    return name if len(name) <= 60 else f"{name[:57]}..."


def _timing(timing: Timing) -> str:
    return f"{words.duration(timing.us)} a call (spread {words.duration(timing.iqr_us)}, {timing.runs} runs)"


def _range(result: Benchmark) -> str:
    return f"{result.speedup_low:.2f} to {result.speedup_high:.2f}"


def _numerics(numerics: Numerics) -> str:
    parts = [_AGREEMENT[numerics.agreement]]
    if numerics.max_abs_error is not None and numerics.agreement is not Agreement.IDENTICAL:
        relative = f" (relative {numerics.max_rel_error:.2g})" if numerics.max_rel_error is not None else ""
        parts.append(f"largest difference {numerics.max_abs_error:.3g}{relative}")
    if numerics.eager_float64_error is not None and numerics.compiled_float64_error is not None:
        eager, compiled = numerics.eager_float64_error, numerics.compiled_float64_error
        parts.append(f"against float64: eager {eager:.2g}, compiled {compiled:.2g} (relative)")
    if numerics.note is not None:
        parts.append(numerics.note)
    return "; ".join(parts)
