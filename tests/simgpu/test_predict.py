"""The time model: what it is made of, what it is called, how wide its range is."""

from dataclasses import replace

import pytest

from inductoscope.compiler.predict import Work, predict, time_of
from inductoscope.protocol import devices
from inductoscope.protocol.report import Kernel, KernelLanguage, Phase, Resources

H200 = devices.find("H200")
KERNEL = Kernel(
    "triton_poi_fused_add_0", KernelLanguage.TRITON, Phase.FORWARD, "0/0", "tl.store(out, tl.load(x))", (),
    bytes_read=1 << 20, bytes_written=1 << 20, flops=0,
)  # fmt: skip


def test_a_small_kernel_costs_a_launch() -> None:
    time = time_of(Work(1000), H200)
    assert time.bound == "floor"
    assert 4 < time.us < 6


def test_a_large_kernel_costs_its_traffic() -> None:
    time = time_of(Work(1_000_000_000), H200)
    assert time.bound == "memory"
    assert time.us == pytest.approx(1e9 / (4917e3 * 0.78) + 4.75, rel=1e-3)


def test_arithmetic_can_take_longer_than_traffic() -> None:
    assert time_of(Work(1_000_000, flops=10**12), H200).bound == "compute"
    slow, fast = (time_of(Work(1_000_000, 10**12, on_tensor_units=on), H200).us for on in (False, True))
    assert fast < slow


def test_bandwidth_is_the_devices_own() -> None:
    work = Work(1_000_000_000)
    order = sorted(devices.DEVICES, key=lambda device: -device.bandwidth_gbps)
    times = [time_of(work, device).us for device in order]
    assert times == sorted(times)


def test_unknown_traffic_is_no_prediction() -> None:
    assert predict(replace(KERNEL, bytes_read=None), H200) is None


def test_the_range_holds_the_prediction_and_the_model_says_where_it_was_fitted() -> None:
    time = predict(KERNEL, H200)
    assert time is not None
    assert time.low_us is not None and time.high_us is not None
    assert time.low_us < time.us < time.high_us
    assert "H200" in time.model


@pytest.mark.parametrize(
    "risky",
    [
        replace(KERNEL, source="tl.atomic_add(out, x)"),
        replace(KERNEL, source="triton_helpers.rand4x(seed, index, XBLOCK)"),
        replace(KERNEL, source="tl.rand(seed, offset)"),
        replace(KERNEL, resources=Resources(255, 12, 0)),
        replace(
            KERNEL,
            source="    for r0_offset in tl.range(0, n, B):\n        pass\n    for r0_offset in tl.range(0, n, B):",
        ),
    ],
    ids=["atomics", "random helper", "random", "spills", "reads twice"],
)
def test_the_range_widens_where_the_model_was_seen_to_fail(risky: Kernel) -> None:
    plain, wide = predict(KERNEL, H200), predict(risky, H200)
    assert plain is not None and wide is not None
    assert wide.us == plain.us
    assert wide.high_us is not None and plain.high_us is not None
    assert wide.high_us > 1.5 * plain.high_us


def test_a_generated_test_input_is_not_a_random_number_of_the_kernel() -> None:
    benchmark = replace(KERNEL, source="arg_0 = rand_strided((2,), (1,), device='cuda:0')")
    assert predict(benchmark, H200) == predict(KERNEL, H200)
