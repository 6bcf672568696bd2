"""What is said of a benchmark."""

from __future__ import annotations

from inductoscope.protocol.bench import (
    Bound,
    Candidate,
    Ceilings,
    Change,
    Departure,
    KernelTime,
    KernelTimes,
    Passes,
    Sides,
    Tuned,
)
from inductoscope.protocol.report import Agreement, Benchmark, Numerics, OutputError, Timing
from inductoscope.server import words
from inductoscope.server.bench import sentences


def benchmark(**fields: object) -> Benchmark:
    return Benchmark("a card", "a clock", Timing(20.0, 1.0, 10), Timing(10.0, 1.0, 10), 2.0, **fields)


def told(**fields: object) -> list[str]:
    return list(sentences.facts(benchmark(**fields)))


def kernel(name: str, share: float, **fields: object) -> KernelTime:
    return KernelTime(name, 5.0, 0.1, 1.0, share, runs=10, **fields)


def test_what_was_asked_for_comes_first():
    first = told(inputs=("x=f32[4]",), mode="max-autotune", passes=Passes.BOTH)[0]
    assert first == "inputs x=f32[4]; mode max-autotune; forward and backward"


def test_an_error_that_was_not_reached_is_said():
    fields = {"speedup_low": 1.9, "speedup_high": 2.1, "error_wanted": 0.02}
    assert any(line.endswith("known to 1.5%") for line in told(relative_error=0.015, **fields))
    assert any("known to 4.0%; 2% not reached" in line for line in told(relative_error=0.04, **fields))


def test_a_program_that_waits_for_the_host_is_told_apart():
    waits = told(host_us=Sides(500.0, 600.0), device_us=Sides(100.0, 80.0))
    assert any("the GPU waits for the host" in line for line in waits)
    busy = told(host_us=Sides(50.0, 60.0), device_us=Sides(100.0, 80.0))
    assert not any("waits for the host" in line for line in busy)


def test_the_three_largest_kernels_are_where_to_start():
    shares = (0.5, 0.2, 0.12, 0.1, 0.08)
    times = KernelTimes(tuple(kernel(f"k{index}", share) for index, share in enumerate(shares)), "a profiler")
    lines = told(kernels=times)
    assert "top three kernels take 82% of the time of all kernels, start here: k0, k1, k2" in lines
    assert "kernels timed by a profiler" in lines


def test_a_kernel_is_told_with_prediction_rates_and_resources():
    full = kernel(
        "k",
        1.0,
        line=7,
        file="m.py",
        predicted_us=6.0,
        gbps=3200.0,
        of_copy=0.8,
        bound=Bound.MEMORY,
        registers=32,
        spills=4,
        occupancy=0.5,
        limited_by="registers",
        candidates=(Candidate("XBLOCK=1024", 5.0, chosen=True), Candidate("XBLOCK=512", 6.0)),
    )
    lines = told(kernels=KernelTimes((full,), "a profiler", Ceilings(4000.0, 700.0, "a copy and a product")))
    assert (
        "  100% 5.00 µs k; line 7; predicted 6.00 µs; 3200 GB/s (80%); memory bound; 32 registers, 4 spilled; "
        "occupancy 50% (limited by registers)"
    ) in lines
    assert "    tried: XBLOCK=1024 5.00 µs (won); XBLOCK=512 6.00 µs" in lines
    assert "the device itself reaches 4000 GB/s and 700 TFLOP/s (a copy and a product)" in lines


def test_algorithms_that_were_tried_are_listed_with_the_winner():
    candidates = tuple(Candidate(f"way {index}", 10.0 + index, chosen=index == 0) for index in range(6))
    lines = told(kernels=KernelTimes((kernel("k", 1.0),), tuned=(Tuned("mm", "sizes", candidates),)))
    assert any(line.startswith("  mm, algorithms tried: way 0 10.0 µs (won)") for line in lines)
    assert any(line.endswith("2 slower ones") for line in lines)


def test_values_that_differ_come_before_those_that_agree():
    same, off = (
        OutputError(name, "float32[4]", agreement, error, error)
        for name, agreement, error in (("result[0]", Agreement.CLOSE, 1e-7), ("result[1]", Agreement.DIFFERS, 0.5))
    )
    numerics = Numerics(Agreement.DIFFERS, 0.5, 0.5)
    listed = [line for line in told(numerics=numerics, outputs=(same, off)) if line.startswith("  result")]
    assert listed[0] == "  result[1] float32[4]: differs, largest difference 0.5 (relative 0.5)"


def test_the_first_departing_operator_is_told_with_its_line():
    found = told(departure=Departure(0, "cos", "cos", "m.py", 7, 0.1, 4))
    assert (
        "first operator that departs: cos (cos, graph 1) at m.py:7, relative difference 0.1; "
        "found by compiling 4 parts of the program"
    ) in found
    none = told(departure=Departure(tried=2, note="only the whole graph departs"))
    assert "first operator that departs: none found (only the whole graph departs; 2 parts compiled)" in none


def change(ratio: float, *, real: bool) -> Change:
    return Change("2026-01-01T00:00:00+00:00", 20.0, 20.0 / ratio, ratio, ratio / 1.1, ratio * 1.1, real, "a rule")


def test_what_became_of_the_last_result_shows_in_a_line_and_in_full():
    faster = benchmark(speedup_low=1.9, speedup_high=2.1, change=change(2.0, real=True))
    assert words.benchmark(faster).endswith("; 2.00x faster than the last time (20.0 µs then)")
    assert sentences.changed(change(2.0, real=True)).startswith("2.00x faster than before: 20.0 µs before")
    slower = benchmark(speedup_low=1.9, speedup_high=2.1, change=change(0.5, real=True))
    assert words.benchmark(slower).endswith("; 2.00x slower than the last time (20.0 µs then)")
    same = benchmark(speedup_low=1.9, speedup_high=2.1, change=change(1.01, real=False))
    assert words.benchmark(same).endswith("; no change beyond noise since the last time")
    assert "no change beyond noise" in sentences.changed(change(1.01, real=False))
