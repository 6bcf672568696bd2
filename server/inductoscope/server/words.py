"""Facts in a few plain words, the same on every surface."""

from __future__ import annotations

from collections.abc import Sequence

from inductoscope.protocol import devices
from inductoscope.protocol.bench import Change
from inductoscope.protocol.report import (
    Benchmark,
    Choice,
    ConfigFact,
    Decision,
    Kernel,
    KernelLanguage,
    PatternFact,
    Predicted,
    Resources,
    Status,
    TargetReport,
    Timing,
)
from inductoscope.server import tally
from inductoscope.server.tally import Tally, Training

_BOUNDS = {
    "memory": "memory-bound",
    "compute": "compute-bound",
    "floor": "bound by the time that any launch takes",
}


def device(text: str) -> str:
    """A device for people: `H200 (simulated)`, `CPU`, `CUDA`."""
    try:
        choice = devices.parse(text)
    except devices.UnknownGpuError:  # one that somebody described
        return f"{text.partition(':')[2]} (simulated)"
    except devices.UnknownDeviceError:
        return text
    return f"{choice.device.key} (simulated)" if choice.device is not None else text.upper()


def count(number: int, noun: str, plural: str | None = None) -> str:
    """`1 kernel`, `2 kernels`; `plural` is for nouns that do not just take an s."""
    return f"{number} {noun}" if number == 1 else f"{number} {plural or noun + 's'}"


def lines(places: Sequence[tuple[str, int]], own: str) -> str:
    """`line 19`, `lines 19, 34`, `lines 19, lib.py:3`: places by file and line, as read in the file `own`."""
    inside = sorted({line for file, line in places if file == own})
    outside = sorted({(file, line) for file, line in places if file != own})
    names = [f"{file.replace(chr(92), '/').rpartition('/')[2]}:{line}" for file, line in outside]
    head = f"{'line' if len(inside) == 1 else 'lines'} {', '.join(map(str, inside))}" if inside else ""
    return ", ".join([head, *names] if head else names)


def pattern(fact: PatternFact, own: str) -> str:
    """A pattern that a pass replaced: `addmm x2 (lines 19, 34)`."""
    where = lines([(place.file, place.line) for place in fact.lines], own)
    return f"{fact.name}{f' x{fact.fired}' if fact.fired > 1 else ''}{f' ({where})' if where else ''}"


def change(before: int, after: int) -> str:
    """A number before and after: `19 -> 2`, or just `19`."""
    return f"{before} -> {after}" if before != after else str(before)


def computed_by(kernel: Kernel) -> str:
    """Who computes a kernel that Inductor did not write all of: `library: cuBLAS`, `Triton template`; else nothing."""
    if kernel.language is KernelLanguage.EXTERN:
        return f"library: {kernel.library}" if kernel.library else "library"
    return kernel.library or ""


def choices(kernel: Kernel, most: int) -> str:
    """`one of 22 ways: mm (library call), triton_mm (...), and 20 more`, with times where somebody took them."""
    if not kernel.choices:
        return ""
    named = [_choice(choice) for choice in kernel.choices[:most]]
    more = len(kernel.choices) - len(named)
    listed = ", ".join([*named, f"and {more} more"] if more > 0 else named)
    return f"one of {count(len(kernel.choices), 'way')}: {listed}"


def decision(value: Decision) -> str:
    """What only a card can decide: `matmul 511x511x511: plain 45.0 µs (estimated), padded 160 µs (estimated)`."""
    return f"{value.subject}: {', '.join(map(_choice, value.candidates))}; shown is {value.shown} ({value.basis.value})"


def _choice(choice: Choice) -> str:
    time = f" {duration(choice.us)}" if choice.us is not None else ""
    if choice.us is None and choice.estimated_us is not None:
        time = f" {duration(choice.estimated_us)} (estimated)"
    return choice.name + time + (" (chosen)" if choice.chosen else "")


def size(count_of_bytes: int) -> str:
    """Bytes with a binary unit: `516 B`, `129 KiB`, `1.5 MiB`."""
    value, unit = float(count_of_bytes), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if value < 1024:
            break
        value, unit = value / 1024, larger
    return f"{value:.0f} {unit}" if value >= 100 or unit == "B" else f"{value:.3g} {unit}"


def duration(microseconds: float) -> str:
    """A time with three digits: `1.90 µs`, `12.3 ms`, `2.05 s`."""
    for limit, factor, unit in ((1e3, 1.0, "µs"), (1e6, 1e-3, "ms")):
        if microseconds < limit:
            return f"{_digits(microseconds * factor)} {unit}"
    return f"{_digits(microseconds * 1e-6)} s"


def cached(report: TargetReport) -> str | None:
    """Where a report comes from that no run was made for: `from a run of the same program 5 min ago`."""
    return None if report.cached is None else f"from a run of the same program {age(report.cached.age_s)}"


def age(seconds: float) -> str:
    """How long ago: `just now`, `40 s ago`, `5 min ago`, `2 h ago`."""
    if seconds < 5:
        return "just now"
    if seconds < 120:
        return f"{seconds:.0f} s ago"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min ago"
    return f"{seconds / 3600:.0f} h ago" if seconds < 172_800 else f"{seconds / 86_400:.0f} days ago"


def first_sentence(text: str, limit: int = 120) -> str:
    """The first sentence of a text, cut at `limit` characters."""
    line = " ".join(text.split())
    head, dot, _ = line.partition(". ")
    sentence = head if not dot else head + "."
    return sentence if len(sentence) <= limit else sentence[: limit - 1].rstrip() + "…"


def predicted(value: Predicted) -> str:
    """A time from a model, said to be one."""
    between = ""
    if value.low_us is not None and value.high_us is not None:
        between = f" ({duration(value.low_us)} to {duration(value.high_us)})"
    bound = _BOUNDS.get(value.bound, f"bound by {value.bound}")
    return f"predicted {duration(value.us)}{between}, {bound} (model: {value.model})"


def configuration(config: ConfigFact) -> str:
    """The configuration of a kernel: `XBLOCK 1024, 4 warps, 2 stages`."""
    blocks = [f"{name} {size}" for name, size in config.blocks.items()]
    limit = [f"at most {config.max_registers} registers"] if config.max_registers is not None else []
    return ", ".join([*blocks, count(config.num_warps, "warp"), count(config.num_stages, "stage"), *limit])


def training(value: Training) -> str:
    """`saves 12 tensors, 3.1 MiB for the backward pass, 2 MiB of that in inputs and parameters; recomputes 7 ops`."""
    of_inputs = f", {size(value.input_bytes)} of that in inputs and parameters"
    parts = [count(value.recomputed, "op")] if value.recomputed else []
    parts += [count(value.views, "view")] if value.views else []
    again = f"; recomputes {' and '.join(parts)}" if parts else ""
    saves = f"saves {count(value.tensors, 'tensor')}, {size(value.bytes)} for the backward pass"
    return f"{saves}{of_inputs if value.inputs else ''}{again}"


def resources(value: Resources) -> str:
    """What a block of a kernel needs."""
    parts = [f"{value.registers} registers", count(value.spills, "spill")]
    if value.shared_bytes:
        parts.append(f"{size(value.shared_bytes)} shared memory")
    if value.occupancy is not None:
        limited = f" (limited by {value.limited_by})" if value.limited_by else ""
        parts.append(f"occupancy {value.occupancy:.0%}{limited}")
    return ", ".join(parts)


def summary(report: TargetReport) -> str:
    """A target's report in one line: `H200 (simulated): 1 graph, 37 ops in 9 kernels, 0 breaks`.

    Operators and kernels are those of one forward pass as first compiled.
    """
    where = "" if report.device == "auto" else f"{device(report.device)}: "  # a run that never got so far as to choose
    return where + _outcome(report)


def account(report: TargetReport) -> str:
    """As `summary`, where there is room to say what the passes left."""
    if report.status not in (Status.COMPILED, Status.PARTIAL):
        return summary(report)
    return f"{device(report.device)}: {totals(report)}"


def totals(report: TargetReport) -> str:
    """The whole in one line: `1 graph, 37 ops -> 9 kernels, 1 library call, 0 breaks`."""
    done = tally.of(report)
    became = ""
    if done.kernels:
        became = f" -> {count(done.generated, 'kernel')}, {count(done.library, 'library call')}"
    again = f", {count(done.recompiles, 'recompile')}" if done.recompiles else ""
    graphs, breaks = count(done.graphs, "graph"), count(done.breaks, "break")
    return f"{graphs}, {operators(done)}{became}, {breaks}{again}"


def _outcome(report: TargetReport) -> str:
    why = f": {first_sentence(report.message)}" if report.message else ""
    if report.status is Status.FAILED:
        return f"failed{why}"
    if report.status is Status.NO_INPUTS:
        return "no example inputs"
    if report.status is Status.NOT_RUN:
        return f"not run{why}"
    if report.status is Status.EAGER:
        return f"nothing was compiled{why}"
    graphs, ops, launched, breaks, recompiles = counts(report)
    done = tally.of(report)
    parts = [graphs, f"{ops} in {launched}" if done.kernels else ops, breaks]
    return ", ".join([*parts, recompiles] if done.recompiles else parts)


def counts(report: TargetReport) -> tuple[str, str, str, str, str]:
    """Graphs, operators, kernels, breaks and recompiles, each with its noun."""
    done = tally.of(report)
    return (
        count(done.graphs, "graph"),
        count(done.ops, "op"),
        kernels(done.generated, done.library),
        count(done.breaks, "break"),
        count(done.recompiles, "recompile"),
    )


def changes(before: TargetReport, after: TargetReport) -> str:
    """What became of a target's numbers: `9 -> 7 kernels, -1 break`; empty where all are the same."""
    was, now = tally.of(before), tally.of(after)
    parts = [
        f"{old} -> {count(new, noun)}"
        for noun, old, new in (
            ("graph", was.graphs, now.graphs),
            ("op", was.ops, now.ops),
            ("kernel", was.generated, now.generated),
            ("library call", was.library, now.library),
        )
        if old != new
    ]
    parts += [
        f"{new - old:+d} {noun if abs(new - old) == 1 else noun + 's'}"
        for noun, old, new in (("break", was.breaks, now.breaks), ("recompile", was.recompiles, now.recompiles))
        if old != new
    ]
    return ", ".join(parts)


def operators(counts: Tally) -> str:
    """`37 ops`, or `37 captured ops -> 31 after passes` where it is known what the passes left."""
    if counts.lowered is None:
        return count(counts.ops, "op")
    return f"{count(counts.ops, 'captured op')} -> {counts.lowered} after passes"


def kernels(generated: int, library: int) -> str:
    """`7 kernels`, `7 kernels and 5 library calls`, `5 library calls`: launches with generated code and without."""
    calls = count(library, "library call")
    if not library:
        return count(generated, "kernel")
    return f"{count(generated, 'kernel')} and {calls}" if generated else calls


def benchmark(result: Benchmark) -> str:
    """A benchmark in one line, with where it was taken."""
    if result.refused is not None or result.speedup is None:
        return f"no speed-up ({result.where}): {result.refused or 'nothing could be compared'}"
    low, high = result.speedup_low, result.speedup_high
    if low is not None and high is not None and low <= 1 <= high:
        times = f"{low:.2f} to {high:.2f} times as fast"
        about = f"compiled about as fast as eager on {result.where} ({times}){_timings(result.compiled, result.eager)}"
        return about + _since(result.change)
    verb = "faster" if result.speedup >= 1 else "slower"
    factor = result.speedup if result.speedup >= 1 else 1 / result.speedup
    told = f"compiled {factor:.2f}x {verb} than eager on {result.where}{_timings(result.compiled, result.eager)}"
    return told + _since(result.change)


def _since(change: Change | None) -> str:
    """What became of the compiled time since the result before this one."""
    if change is None:
        return ""
    if not change.beyond_noise:
        return "; no change beyond noise since the last time"
    factor, verb = (change.ratio, "faster") if change.ratio >= 1 else (1 / change.ratio, "slower")
    return f"; {factor:.2f}x {verb} than the last time ({duration(change.before_us)} then)"


def _timings(compiled: Timing | None, eager: Timing | None) -> str:
    if compiled is None or eager is None:
        return ""
    return f": {duration(compiled.us)} against {duration(eager.us)}"


def _digits(value: float) -> str:
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:.0f}"
