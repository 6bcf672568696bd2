"""Measured kernels beside what is known of them otherwise."""

from __future__ import annotations

import pytest

from inductoscope.compiler import measured_kernels
from inductoscope.compiler.measured_kernels import Card, joined, with_measured
from inductoscope.protocol import devices
from inductoscope.protocol.bench import Bound, Ceilings, KernelTime, KernelTimes
from inductoscope.protocol.own_devices import OwnDevice
from inductoscope.protocol.recording import Measured, Recording
from inductoscope.protocol.report import Kernel, KernelLanguage, Phase, Place, Predicted

CARD = Card(devices.find("H200").limits, Ceilings(4000.0, 700.0, "measured"))


def kernel(name: str, line: int = 3, language: KernelLanguage = KernelLanguage.TRITON, **fields: object) -> Kernel:
    return Kernel(name, language, Phase.FORWARD, "0/0", None, (Place("m.py", line),), **fields)


def time(name: str, us: float = 10.0, **fields: object) -> KernelTime:
    return KernelTime(name, us, 0.1, 1.0, 1.0, runs=10, **fields)


def completed(one: KernelTime, *known: Kernel) -> KernelTime:
    return joined(KernelTimes((one,)), known, CARD).kernels[0]


def test_a_kernel_gets_line_prediction_and_rates_over_the_ceilings():
    known = kernel(
        "k", bytes_read=16_000_000, bytes_written=16_000_000, predicted=Predicted(9.0, "memory", "m", 8.0, 12.0)
    )
    found = completed(time("k"), known)
    assert (found.file, found.line) == ("m.py", 3)
    assert (found.predicted_us, found.predicted_low_us, found.predicted_high_us) == (9.0, 8.0, 12.0)
    assert found.gbps == pytest.approx(3200)
    assert found.of_copy == pytest.approx(0.8)
    assert found.bound is Bound.MEMORY


@pytest.mark.parametrize(
    ("flops", "moved", "bound"), [(5_000_000_000, 1000, Bound.COMPUTE), (1000, 1000, Bound.LATENCY)]
)
def test_what_bounds_a_kernel_is_the_ceiling_that_it_comes_near(flops, moved, bound):
    found = completed(time("k"), kernel("k", flops=flops, bytes_read=moved, bytes_written=0))
    assert found.bound is bound


def test_without_traffic_nothing_is_said_of_what_bounds_it():
    found = completed(time("k"), kernel("k"))
    assert (found.bound, found.gbps, found.tflops) == (None, None, None)


def test_launches_of_one_kernel_with_several_sizes_are_averaged():
    small, large = (kernel("k", bytes_read=size, bytes_written=0) for size in (10_000_000, 30_000_000))
    assert completed(time("k"), small, large).gbps == pytest.approx(2000)


def test_a_library_kernel_is_known_by_the_operator_that_launched_it():
    call = kernel("extern_kernels.mm", 7, KernelLanguage.EXTERN, flops=10, bytes_read=1, bytes_written=1)
    assert completed(time("sm90_gemm", operator="aten::mm"), call).line == 7


def test_calls_of_one_operator_that_went_to_several_kernels_are_not_guessed_apart():
    calls = [kernel("extern_kernels.mm", line, KernelLanguage.EXTERN, bytes_read=line) for line in (7, 8)]
    times = KernelTimes((time("gemm_a", operator="aten::mm"), time("gemm_b", operator="aten::mm")))
    found = joined(times, calls, CARD).kernels
    assert [one.line for one in found] == [None, None]
    assert [one.predicted_us for one in found] == [None, None]


def test_occupancy_is_reckoned_from_what_triton_made():
    found = completed(time("k", registers=255, num_warps=4, shared_bytes=0))
    assert 0 < found.occupancy < 0.2
    assert found.limited_by == "registers"
    assert completed(time("k")).occupancy is None


def test_kernels_of_the_report_get_their_measured_time():
    known = [kernel("k"), kernel("unseen")]
    found = with_measured(known, KernelTimes((time("k", 5.0),), "the profiler"), "a card")
    assert (found[0].measured.us, found[0].measured.runs, found[0].measured.where) == (5.0, 10, "a card")
    assert found[1].measured is None


def test_the_ceilings_are_those_that_the_card_reached():
    rates = (Measured("copy", 4200.0, "GB/s", "a copy"), Measured("matmul", 750.0, "TFLOP/s", "a product"))
    own = OwnDevice(devices.find("H200"), Recording("H200", "2.11", None, None, None, rates))
    assert measured_kernels.card(own).ceilings == Ceilings(4200.0, 750.0, "a copy; a product")
