"""What in a benchmark deserves a finding.  Must not know where it is shown."""

from __future__ import annotations

from dataclasses import dataclass

from inductoscope.protocol.report import Agreement, Benchmark, Numerics


@dataclass(frozen=True)
class Verdict:
    """A code of `protocol.codes` and the sentence for it."""

    code: str
    message: str


def verdicts(benchmark: Benchmark) -> tuple[Verdict, ...]:
    """`numerics-mismatch` and `slower-than-eager`, where the figures leave no doubt."""
    found = []
    if benchmark.numerics is not None and benchmark.numerics.agreement is Agreement.DIFFERS:
        found.append(Verdict("numerics-mismatch", _mismatch(benchmark.numerics)))
    if benchmark.speedup is not None and benchmark.speedup_high is not None and benchmark.speedup_high < 1:
        message = (
            f"Compiled takes {1 / benchmark.speedup:.2f} times as long as eager on {benchmark.where}, and is slower in "
            "at least three quarters of the rounds. Small operators, or compiled code that is left and entered again "
            "at graph breaks, cost more than fusion saves."
        )
        found.append(Verdict("slower-than-eager", message))
    return tuple(found)


def _mismatch(numerics: Numerics) -> str:
    if numerics.note:
        return f"Compiled and eager results differ: {numerics.note}."
    text = (
        f"Compiled and eager results differ: largest difference {numerics.max_abs_error:.3g}, "
        f"relative to the largest magnitude {numerics.max_rel_error:.3g}"
    )
    if numerics.eager_float64_error is None or numerics.compiled_float64_error is None:
        return f"{text}."
    return (
        f"{text}; against float64 eager is off by {numerics.eager_float64_error:.3g} and compiled by "
        f"{numerics.compiled_float64_error:.3g}."
    )
