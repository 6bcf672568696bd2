"""What a call of a target is predicted to take, compiled and eager, in words.

Works from the report alone.  A sum that leaves something out says how much.
"""

from __future__ import annotations

from collections.abc import Iterator

from inductoscope.protocol.report import Phase, PredictedCall, PredictedRun, TargetReport
from inductoscope.server.words import count, duration

_PASSES = {Phase.FORWARD: "a call", Phase.BACKWARD: "its backward pass"}


def of(report: TargetReport, phase: Phase = Phase.FORWARD) -> PredictedCall | None:
    """The prediction for all graphs of one call; None where nothing is predicted."""
    return next((one for one in report.predicted_calls if one.graph is None and one.phase is phase), None)


def lines(report: TargetReport) -> Iterator[str]:
    """A line for the forward pass and one for the backward pass, as far as there are predictions."""
    for phase in Phase:
        call = of(report, phase)
        if call is not None:
            yield line(call)


def line(call: PredictedCall) -> str:
    """`predicted: a call 33.1 µs (25.0 µs to 49.0 µs), eager 59.0 µs, so compiling gives 1.8x (1.3x to 2.4x)`."""
    what = _PASSES[call.phase] if call.graph is None else f"graph {call.graph}{_backward(call)}"
    text = f"predicted: {what} {_time(call.compiled)}"
    if call.every_branch:
        text += " if every branch ran, and each loop once"
    if call.eager is not None:
        text += f", eager {_time(call.eager)}"
    return text + (f", so compiling gives {_factor(call)}" if call.speedup is not None else "")


def gain(report: TargetReport) -> str | None:
    """`predicted 33.1 µs a call, 1.8x faster than eager (1.3x to 2.4x)`; None where nothing is predicted in full."""
    call = of(report)
    if call is None or call.compiled.left_out:
        return None
    against = f", {_factor(call)} against eager" if call.speedup is not None else ""
    return f"predicted {duration(call.compiled.us)} a call{against}"


def change(before: TargetReport, after: TargetReport) -> str | None:
    """`predicted 41.0 µs -> 33.0 µs a call`, or None where there is none to tell."""
    was, now = of(before), of(after)
    if now is None or (was is not None and _short(was.compiled) == _short(now.compiled)):
        return None
    earlier = f"{_short(was.compiled)} -> " if was is not None else ""
    return f"predicted {earlier}{_short(now.compiled)} a call"


def account(report: TargetReport) -> Iterator[str]:
    """All that is predicted: the whole, where its time goes, each graph where there are several, and the model."""
    for phase in Phase:
        call = of(report, phase)
        if call is None:
            continue
        yield line(call)
        yield f"compiled: {_where(call.compiled)}"
        if call.eager is not None:
            yield f"eager: {_where(call.eager)}"
        if call.note is not None:
            yield call.note
        parts = [one for one in report.predicted_calls if one.graph is not None and one.phase is phase]
        if len(parts) > 1:
            for part in parts:
                often = f" ({part.times} times in the first call)" if part.times != 1 else ""
                yield f"{line(part)}{often}"
    models = dict.fromkeys(call.model for call in report.predicted_calls)
    if models:
        yield f"model: {'; '.join(models)}"
        if report.breaks:
            yield "what Python does between the graphs is not counted"


def _where(run: PredictedRun) -> str:
    longer = "the host, which launches them," if run.host_us > run.device_us else "the device"
    return (
        f"{count(run.launches, 'launch', 'launches')}, {duration(run.device_us)} on the device, "
        f"{duration(run.host_us)} to launch them: {longer} decides"
    )


def _time(run: PredictedRun) -> str:
    if run.left_out and run.left_out >= run.launches:
        return f"unknown ({count(run.launches, 'launch', 'launches')} without a model)"
    return f"{_short(run)} ({duration(run.low_us)} to {duration(run.high_us)})"


def _short(run: PredictedRun) -> str:
    """The time, and of how much of the launches it is the time."""
    known = f" for all but {run.left_out} of {run.launches} launches" if run.left_out else ""
    return f"{duration(run.us)}{known}"


def _factor(call: PredictedCall) -> str:
    return f"{_times(call.speedup)} ({_times(call.speedup_low)} to {_times(call.speedup_high)})"


def _times(factor: float | None) -> str:
    """`1.8x`, `120x`: two digits, and no exponent."""
    value = factor or 0.0
    return f"{value:.0f}x" if value >= 10 else f"{value:.2g}x"


def _backward(call: PredictedCall) -> str:
    return " backward" if call.phase is Phase.BACKWARD else ""
