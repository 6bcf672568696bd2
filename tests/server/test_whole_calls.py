"""Predicted calls in words: what is left out is said, and no gain is claimed without both sides."""

from __future__ import annotations

from dataclasses import replace

from inductoscope.protocol.report import Phase, PredictedCall, PredictedRun, Rung, Status, TargetReport
from inductoscope.server import whole_calls

COMPILED = PredictedRun(33.1, 25.0, 49.0, device_us=33.1, host_us=30.0, launches=4)
EAGER = PredictedRun(59.0, 44.0, 80.0, device_us=41.0, host_us=59.0, launches=9)
CALL = PredictedCall(None, Phase.FORWARD, 1, COMPILED, EAGER, "a model", 1.78, 1.3, 2.4)
PARTIAL = replace(CALL, compiled=replace(COMPILED, left_out=1), speedup=None, speedup_low=None, speedup_high=None)


def report(*calls: PredictedCall) -> TargetReport:
    return TargetReport("m.py", "f", 1, "sim:H200", Rung.LOWER, Status.COMPILED, predicted_calls=calls)


def test_a_line_has_both_sides_with_ranges_and_the_gain() -> None:
    assert list(whole_calls.lines(report(CALL))) == [
        "predicted: a call 33.1 µs (25.0 µs to 49.0 µs), eager 59.0 µs (44.0 µs to 80.0 µs), "
        "so compiling gives 1.8x (1.3x to 2.4x)"
    ]
    assert whole_calls.gain(report(CALL)) == "predicted 33.1 µs a call, 1.8x (1.3x to 2.4x) against eager"


def test_a_sum_that_leaves_something_out_says_how_much_and_claims_no_gain() -> None:
    [line] = whole_calls.lines(report(PARTIAL))
    assert "33.1 µs for all but 1 of 4 launches" in line
    assert "compiling gives" not in line
    assert whole_calls.gain(report(PARTIAL)) is None


def test_a_sum_of_nothing_is_no_time() -> None:
    nothing = replace(PARTIAL, compiled=replace(COMPILED, launches=3, left_out=3), eager=None)
    assert list(whole_calls.lines(report(nothing))) == ["predicted: a call unknown (3 launches without a model)"]


def test_forward_and_backward_are_apart() -> None:
    backward = replace(CALL, phase=Phase.BACKWARD)
    forward_line, backward_line = whole_calls.lines(report(CALL, backward))
    assert "a call" in forward_line and "its backward pass" in backward_line


def test_an_edit_changes_a_time_or_says_nothing() -> None:
    slower = replace(CALL, compiled=replace(COMPILED, us=41.0))
    assert whole_calls.change(report(slower), report(CALL)) == "predicted 41.0 µs -> 33.1 µs a call"
    assert whole_calls.change(report(), report(CALL)) == "predicted 33.1 µs a call"
    assert whole_calls.change(report(CALL), report(CALL)) is None
    assert whole_calls.change(report(CALL), report()) is None


def test_the_account_says_what_decides_and_tells_graphs_apart() -> None:
    parts = [replace(CALL, graph="0/0"), replace(CALL, graph="1/0", times=3)]
    told = list(whole_calls.account(report(*parts, CALL)))
    assert "compiled: 4 launches, 33.1 µs on the device, 30.0 µs to launch them: the device decides" in told
    assert (
        "eager: 9 launches, 41.0 µs on the device, 59.0 µs to launch them: the host, which launches them, decides"
        in told
    )
    assert [line for line in told if line.startswith("predicted: graph")][1].endswith("(3 times in the first call)")
    assert told[-1] == "model: a model"


def test_an_unknown_eager_side_says_why() -> None:
    alone = replace(PARTIAL, compiled=COMPILED, eager=None, note="What it takes eager is not known: too large.")
    told = list(whole_calls.account(report(alone)))
    assert "What it takes eager is not known: too large." in told
    assert whole_calls.gain(report(alone)) == "predicted 33.1 µs a call"


def test_nothing_predicted_is_nothing_said() -> None:
    assert list(whole_calls.lines(report())) == list(whole_calls.account(report())) == []


def test_factors_are_written_without_exponents() -> None:
    fast = replace(CALL, speedup=123.4, speedup_low=9.96, speedup_high=1400.0)
    [line] = whole_calls.lines(report(fast))
    assert line.endswith("so compiling gives 123x (10x to 1400x)")


def test_branches_that_do_not_all_run_are_said() -> None:
    [line] = whole_calls.lines(report(replace(PARTIAL, compiled=COMPILED, eager=None, every_branch=True)))
    assert line.endswith("(25.0 µs to 49.0 µs) if every branch ran, and each loop once")
