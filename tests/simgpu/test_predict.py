"""The time model: what it is made of, what it is called, how wide its range is."""

from dataclasses import replace

import pytest

from inductoscope.compiler.predict import predict
from inductoscope.compiler.predict.eager import EagerOp, time_of_operator
from inductoscope.compiler.predict.generated import Work, time_of
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


POINTWISE = """
@triton_heuristics.pointwise(size_hints={'x': 16777216})
@triton.jit
def triton_poi_fused_0(in_ptr0, out_ptr0, xnumel, XBLOCK : tl.constexpr):
    xnumel = 10000000
    tmp0 = tl.load(in_ptr0 + (x0), xmask)
    %s
    tl.store(out_ptr0 + (x0), tmp1, xmask)
"""


ROWS = """
def triton_red_fused_0(in_ptr0, out_ptr0, xnumel, r0_numel, XBLOCK : tl.constexpr, R0_BLOCK : tl.constexpr):
    xnumel = 1024
    r0_numel = 32768
    for r0_offset in tl.range(0, r0_numel, R0_BLOCK):
        tmp0 = tl.load(in_ptr0 + (r0_1 + 32768*x0), xmask)
        %s
    tmp4 = triton_helpers.max2(_tmp4, 1)[:, None]
    %s
    tl.store(out_ptr0 + (x0), tmp6, xmask)
"""


def test_what_follows_a_loop_over_rows_is_computed_once_a_row() -> None:
    call = "tmp6 = libdevice.erf(libdevice.tanh(libdevice.lgamma(tmp4)))"
    none, inside, after = (
        predict(replace(KERNEL, source=ROWS % lines), H200)
        for lines in (("pass", "pass"), (call, "pass"), ("pass", call))
    )
    assert none is not None and inside is not None and after is not None
    assert after.us == pytest.approx(none.us, rel=0.02)
    assert inside.us > 5 * none.us


@pytest.mark.parametrize(
    "costly",
    ["tmp1 = libdevice.erf(libdevice.tanh(libdevice.lgamma(tmp0)))", "tl.atomic_add(out_ptr1 + (tmp0), tmp0, xmask)"],
    ids=["transcendental functions", "atomics"],
)
def test_what_a_kernel_does_besides_moving_memory_takes_time(costly: str) -> None:
    plain = predict(replace(KERNEL, source=POINTWISE % "tmp1 = tmp0 + 1"), H200)
    slow = predict(replace(KERNEL, source=POINTWISE % costly), H200)
    assert plain is not None and slow is not None
    assert slow.us > plain.us
    assert slow.bound == "compute"


def test_a_symbolic_size_counts_as_the_compilers_hint_of_it() -> None:
    costly = POINTWISE % "tmp1 = libdevice.erf(libdevice.tanh(libdevice.lgamma(tmp0)))"
    symbolic = costly.replace("    xnumel = 10000000\n", "")
    known, hinted = (predict(replace(KERNEL, source=source), H200) for source in (costly, symbolic))
    assert known is not None and hinted is not None
    assert hinted.us > known.us  # 16777216 elements for 10000000


def library(name: str, flops: int, *operands: str, moved: int = 1 << 20) -> Kernel:
    return replace(
        KERNEL, name=name, language=KernelLanguage.EXTERN, source=None, flops=flops, operands=operands,
        bytes_read=moved, bytes_written=0, library="cuBLAS", tf32="convolution" in name,  # as torch has it by default
    )  # fmt: skip


# Times of single calls on an H200 (torch 2.11, do_bench): the model has to be within 1.5x of each.
@pytest.mark.parametrize(
    ("name", "flops", "operands", "moved", "measured"),
    [
        (
            "extern_kernels.addmm", 2 * 1024 * 512 * 1536,
            ("bf16[1536]", "bf16[1024, 512]", "bf16[512, 1536]"), 5_767_168, 9.8,
        ),
        ("extern_kernels.mm", 2 * 4096**3, ("f32[4096, 4096]", "f32[4096, 4096]"), 3 << 26, 2682.6),
        (
            "extern_kernels.addmm", 2 * 256 * 2048 * 512,
            ("f32[512]", "f32[256, 2048]", "f32[2048, 512]"), 6_815_744, 57.5,
        ),
        ("extern_kernels.bmm", 2 * 32 * 256 * 64 * 256, ("bf16[32, 256, 256]", "bf16[32, 256, 64]"), 6_291_456, 8.4),
        (
            "torch.ops.aten._scaled_dot_product_cudnn_attention.default", 4 * 4 * 8 * 256 * 256 * 64,
            ("bf16[4, 8, 256, 64]",) * 3, 4_194_304, 10.5,
        ),
        (
            "torch.ops.aten._scaled_dot_product_efficient_attention.default", 4 * 2 * 8 * 512 * 512 * 64,
            ("f32[2, 8, 512, 64]",) * 3, 8_388_608, 64.4,
        ),
        (
            "extern_kernels.convolution", 2 * 4 * 64 * 32 * 32 * 576,
            ("f32[4, 64, 32, 32]", "f32[64, 64, 3, 3]"), 2_244_608, 18.8,
        ),
    ],
)  # fmt: skip
def test_library_calls_take_about_what_was_measured(
    name: str, flops: int, operands: tuple[str, ...], moved: int, measured: float
) -> None:
    time = predict(library(name, flops, *operands, moved=moved), H200)
    assert time is not None
    assert 1 / 1.5 < time.us / measured < 1.5


@pytest.mark.parametrize(
    "unknown",
    [
        library("torch.ops.aten.sort.stable", 0, "f32[4, 4]"),
        library("extern_kernels.mm", 8),
        library("extern_kernels.mm", 8, "f32[s0, 4]", "f32[4, 4]"),
        replace(library("extern_kernels.mm", 8, "f32[4, 4]", "f32[4, 4]"), flops=None),
        replace(library("extern_kernels.mm", 8, "f32[4, 4]", "f32[4, 4]"), library="MKL"),
    ],
    ids=["no model", "no operands", "a size without a value", "no count of operations", "a call on the CPU"],
)
def test_a_library_call_that_the_model_does_not_know_has_no_time(unknown: Kernel) -> None:
    assert predict(unknown, H200) is None


def test_tf32_makes_products_faster_where_the_card_has_it() -> None:
    plain = library("extern_kernels.mm", 2 * 4096**3, "f32[4096, 4096]", "f32[4096, 4096]", moved=3 << 26)
    allowed = replace(plain, tf32=True)
    for key, faster in (("H200", True), ("A100", True), ("T4", False)):
        slow, fast = (predict(kernel, devices.find(key)) for kernel in (plain, allowed))
        assert slow is not None and fast is not None
        assert (fast.us < slow.us / 3) if faster else fast == slow


def test_unaligned_tf32_may_be_as_slow_as_none() -> None:
    plain = library("extern_kernels.mm", 2 * 4095**3, "f32[4095, 4095]", "f32[4095, 4095]", moved=3 << 26)
    slow, unsure = (predict(kernel, H200) for kernel in (plain, replace(plain, tf32=True)))
    assert slow is not None and unsure is not None and slow.low_us is not None and unsure.low_us is not None
    assert unsure.us == slow.us and unsure.low_us < slow.low_us


def test_a_convolution_takes_no_matrix_units_that_a_card_or_a_program_does_not_have_for_it() -> None:
    operands = ("f32[64, 256, 56, 56]", "f32[256, 256, 3, 3]")
    allowed = replace(library("extern_kernels.convolution", 2 * 64 * 256 * 56 * 56 * 2304, *operands), tf32=True)
    t4, h200 = devices.find("T4"), H200
    least = (allowed.flops or 0) / (t4.float32_tflops * 1e6)
    for kernel, device in ((allowed, t4), (replace(allowed, tf32=False), t4)):
        found = predict(kernel, device)
        assert found is not None and found.us > least
    fast, slow = predict(allowed, h200), predict(replace(allowed, tf32=False), h200)
    assert fast is not None and slow is not None and fast.us < slow.us / 3


@pytest.mark.parametrize("dtype", ["f64", "c64", "i8", "f8e4m3fn"])
def test_products_of_types_without_a_known_rate_have_no_time(dtype: str) -> None:
    assert predict(library("extern_kernels.mm", 1 << 31, f"{dtype}[64, 64]", f"{dtype}[64, 64]"), H200) is None


def test_bfloat16_has_no_known_rate_on_cards_without_units_for_it() -> None:
    product = library("extern_kernels.mm", 1 << 31, "bf16[64, 64]", "bf16[64, 64]")
    assert predict(product, devices.find("T4")) is None
    assert all(predict(product, devices.find(key)) is not None for key in ("A100", "H200"))


def test_matrix_products_that_nobody_counted_have_no_time() -> None:
    source = POINTWISE % "tmp1 = tl.dot(tmp0, tmp0)"
    assert predict(replace(KERNEL, source=source, flops=None), H200) is None
    assert predict(replace(KERNEL, source=source, flops=1 << 30), H200) is not None


def test_no_library_of_amd_was_timed() -> None:
    product = library("extern_kernels.mm", 1 << 31, "f32[64, 64]", "f32[64, 64]")
    assert predict(product, devices.find("MI300X")) is None
    eager = EagerOp("aten.mm.default", product.operands, 1 << 20, 1 << 31)
    assert time_of_operator(eager, devices.find("MI300X")) is None
    assert time_of_operator(eager, H200) is not None


def test_the_seeds_of_dropout_take_a_launch() -> None:
    seeds = replace(library("aten.randint.low_out", 0, moved=16), library="cuRAND (Philox)", flops=None)
    found = predict(seeds, H200)
    assert found is not None and found.bound == "floor"


def test_a_convolution_without_channels_has_no_time() -> None:
    assert predict(library("extern_kernels.convolution", 0, "f32[1, 0, 8, 8]", "f32[4, 0, 3, 3]"), H200) is None


def test_symbolic_sizes_count_with_the_values_that_they_had() -> None:
    plain, symbolic = (
        predict(library("extern_kernels.mm", 1 << 31, f"f32[{rows}, 4096]", "f32[4096, 64]"), H200)
        for rows in ("384", "2*Max(s27, 7)=384")
    )
    assert plain is not None
    assert plain == symbolic


def test_a_device_that_was_not_measured_says_so_and_has_a_wider_range() -> None:
    here, there = predict(KERNEL, H200), predict(KERNEL, devices.find("T4"))
    assert here is not None and there is not None
    assert "scaled" in there.model and "scaled" not in here.model
    assert there.high_us and there.low_us and here.high_us and here.low_us
    assert there.high_us / there.low_us > here.high_us / here.low_us


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
    assert wide.high_us is not None and plain.high_us is not None
    assert wide.high_us / wide.us > 1.5 * plain.high_us / plain.us


def test_a_generated_test_input_is_not_a_random_number_of_the_kernel() -> None:
    benchmark = replace(KERNEL, source="arg_0 = rand_strided((2,), (1,), device='cuda:0')")
    assert predict(benchmark, H200) == predict(KERNEL, H200)
