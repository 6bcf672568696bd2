"""Whole calls: sums of kernels and of operators, against the host that launches them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from inductoscope.compiler.predict.eager import HAND_WRITTEN, EagerOp, Launches, kernels_of, time_of_operator
from inductoscope.compiler.predict.whole import GraphCall, Replay, calls
from inductoscope.protocol import devices
from inductoscope.protocol.report import Kernel, KernelLanguage, Phase, Predicted, PredictedCall

H200 = devices.find("H200")
BIG = 1 << 30


def kernel(us: float | None, graph: str = "0/0", phase: Phase = Phase.FORWARD) -> Kernel:
    predicted = Predicted(us, "memory", "roofline", us * 0.8, us * 1.3) if us is not None else None
    return Kernel("k", KernelLanguage.TRITON, phase, graph, "", (), predicted=predicted)


def op(name: str = "add.Tensor", moved: int = BIG, launches: Launches = Launches.KERNELS) -> EagerOp:
    return EagerOp(f"aten.{name}", ("f32[1024]",), moved, launches=launches)


def whole(found: tuple[PredictedCall, ...], phase: Phase = Phase.FORWARD) -> PredictedCall:
    [one] = [call for call in found if call.graph is None and call.phase is phase]
    return one


def test_large_kernels_decide_and_fewer_of_them_are_a_gain() -> None:
    found = whole(calls([kernel(300.0)], [GraphCall("0/0", 1, (op(),) * 4)], H200))
    assert found.compiled.us == found.compiled.device_us > found.compiled.host_us
    assert found.compiled.us == pytest.approx(300, rel=0.02)
    assert found.eager is not None and found.eager.launches == 4
    assert found.speedup == pytest.approx(found.eager.us / found.compiled.us, abs=0.01)
    assert found.speedup_low is not None and found.speedup_high is not None
    assert found.speedup_low < found.speedup < found.speedup_high


def test_small_kernels_wait_for_the_host() -> None:
    small = [op(moved=1024)] * 40
    found = whole(calls([kernel(4.8)] * 3, [GraphCall("0/0", 1, tuple(small))], H200))
    assert found.eager is not None
    assert found.eager.us == found.eager.host_us > found.eager.device_us
    assert found.compiled.us == found.compiled.host_us < found.eager.us


def test_a_cuda_graph_is_launched_at_once() -> None:
    kernels, graphs = [kernel(4.8)] * 40, [GraphCall("0/0", 1, (op(moved=1024),) * 40)]
    singly, as_one = (whole(calls(kernels, graphs, H200, replay)) for replay in Replay)
    assert as_one.compiled.host_us < singly.compiled.host_us
    assert as_one.speedup is not None and singly.speedup is not None and as_one.speedup > singly.speedup


def test_a_host_that_is_slow_is_slow_on_both_sides() -> None:
    small = whole(calls([kernel(4.8)] * 3, [GraphCall("0/0", 1, (op(moved=1024),) * 40)], H200))
    assert small.eager is not None and small.speedup_high is not None and small.speedup_low is not None
    apart = (small.eager.high_us / small.compiled.low_us) / (small.eager.low_us / small.compiled.high_us)
    assert small.speedup_high / small.speedup_low < apart / 2


def test_library_calls_of_both_sides_leave_the_speed_up_certain() -> None:
    product = EagerOp("aten.mm.default", ("f32[4096, 4096]", "f32[4096, 4096]"), 3 << 26, 2 * 4096**3)
    time = time_of_operator(product, H200)
    library = replace(kernel(1.0), language=KernelLanguage.EXTERN, predicted=time)
    same = whole(calls([library], [GraphCall("0/0", 1, (product,))], H200))
    generated = whole(
        calls([replace(library, language=KernelLanguage.TRITON)], [GraphCall("0/0", 1, (product,))], H200)
    )
    assert same.speedup == generated.speedup
    assert same.speedup_low is not None and same.speedup_high is not None and generated.speedup_high is not None
    assert same.speedup_high / same.speedup_low < 1.4 < generated.speedup_high


def test_a_row_of_kernels_may_be_as_slow_as_one_by_one() -> None:
    found = whole(calls([kernel(4.8)] * 400, [GraphCall("0/0", 1, (op(),))], H200))
    assert found.compiled.device_us < 400 * 4.8 <= found.compiled.high_us


def test_what_has_no_prediction_is_counted_and_leaves_no_speed_up() -> None:
    found = whole(calls([kernel(300.0), kernel(None)], [GraphCall("0/0", 1, (op(), op("sort.stable")))], H200))
    assert (found.compiled.launches, found.compiled.left_out) == (2, 1)
    assert found.eager is not None and found.eager.left_out == 1
    assert found.speedup is None


def test_a_hand_written_kernel_takes_the_same_on_both_sides() -> None:
    own = replace(kernel(500.0), user_written=True)
    launch = EagerOp(HAND_WRITTEN, (), 0, launches=Launches.UNKNOWN)
    found = whole(calls([own, kernel(300.0)], [GraphCall("0/0", 1, (op(), launch))], H200))
    assert found.eager is not None and found.eager.left_out == 0
    assert found.eager.us > 500
    twice = whole(calls([own, kernel(300.0)], [GraphCall("0/0", 1, (op(), launch, launch))], H200))
    assert twice.eager is not None and twice.eager.left_out == 2  # which is which cannot be told


def test_a_graph_whose_operators_are_unknown_says_why() -> None:
    found = whole(calls([kernel(300.0)], [GraphCall("0/0", 1, None, missing="ValueError: no shape")], H200))
    assert found.eager is None and found.speedup is None
    assert found.note == "What it takes eager is not known: ValueError: no shape."


def test_the_whole_counts_each_graph_as_often_as_a_call_runs_it() -> None:
    kernels = [kernel(300.0), kernel(500.0, "1/0"), kernel(700.0, "0/1"), kernel(900.0, phase=Phase.BACKWARD)]
    graphs = [
        GraphCall("0/0", 1, (op(),), (op(),) * 3),
        GraphCall("1/0", 2, (op(),) * 2),
        GraphCall("0/1", 0, (op(),)),  # a recompilation for a later call
    ]
    found = calls(kernels, graphs, H200)
    assert [(one.graph, one.phase) for one in found] == [
        ("0/0", Phase.FORWARD), ("1/0", Phase.FORWARD), ("0/1", Phase.FORWARD), ("0/0", Phase.BACKWARD),
        (None, Phase.FORWARD), (None, Phase.BACKWARD),
    ]  # fmt: skip
    assert whole(found).compiled.launches == 3
    assert whole(found).compiled.us == pytest.approx(300 + 2 * 500, rel=0.02)
    assert whole(found, Phase.BACKWARD).compiled.us == pytest.approx(900, rel=0.02)


def test_another_device_is_scaled_and_says_so() -> None:
    graph = [GraphCall("0/0", 1, (op(),))]
    here, there = (whole(calls([kernel(300.0)], graph, device)) for device in (H200, devices.find("T4")))
    assert "scaled" in there.model and "scaled" not in here.model
    assert here.eager is not None and there.eager is not None
    assert there.eager.us > 5 * here.eager.us


def test_views_and_reservations_launch_nothing() -> None:
    assert kernels_of(op(launches=Launches.NOTHING)) == 0


@pytest.mark.parametrize("name", ["sort.stable", "linalg_inv_ex.default", "_fft_r2c.default"])
def test_an_operator_without_a_model_has_no_time(name: str) -> None:
    assert time_of_operator(op(name), H200) is None


def test_an_operator_of_the_programs_own_has_no_time() -> None:
    assert time_of_operator(replace(op(), name="mylib.mine.default"), H200) is None


def test_an_eager_product_takes_what_a_compiled_one_takes() -> None:
    product = EagerOp("aten.mm.default", ("f32[4096, 4096]", "f32[4096, 4096]"), 3 << 26, 2 * 4096**3)
    time = time_of_operator(product, H200)
    assert time is not None
    assert 1 / 1.5 < time.us / 2682.6 < 1.5  # measured on an H200, as in test_predict


def test_a_graph_that_branches_by_its_data_says_that_every_branch_counts() -> None:
    graphs = [GraphCall("0/0", 1, None, missing="it branches", branches=True), GraphCall("1/0", 1, (op(),))]
    found = calls([kernel(5.0), kernel(5.0, "1/0")], graphs, H200)
    assert {call.graph: call.every_branch for call in found} == {"0/0": True, "1/0": False, None: True}


def test_an_eager_layer_norm_of_few_long_rows_is_as_slow_as_its_blocks() -> None:
    few = EagerOp("aten.native_layer_norm.default", ("f32[16, 4194304]", "f32[4194304]", "f32[4194304]"), 1 << 29)
    many = EagerOp("aten.native_layer_norm.default", ("f32[65536, 1024]", "f32[1024]", "f32[1024]"), 1 << 29)
    slow, fast = (time_of_operator(norm, H200) for norm in (few, many))
    assert slow is not None and fast is not None
    assert slow.us == pytest.approx(8260, rel=0.05)  # as measured
    assert fast.bound == "memory"
    assert fast.us < 200
