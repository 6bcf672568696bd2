"""What in a benchmark becomes a finding."""

from inductoscope.compiler.bench import verdicts
from inductoscope.protocol.codes import CODES
from inductoscope.protocol.report import Agreement, Benchmark, Numerics


def benchmark(**fields: object) -> Benchmark:
    return Benchmark(where="a CPU", method="a clock", **fields)


def test_a_faster_program_with_close_results_needs_no_finding():
    numerics = Numerics(Agreement.CLOSE, max_abs_error=1e-7, max_rel_error=1e-7)
    assert verdicts(benchmark(speedup=1.5, speedup_low=1.4, speedup_high=1.6, numerics=numerics)) == ()


def test_slower_in_most_rounds_is_a_finding_with_the_figure():
    (found,) = verdicts(benchmark(speedup=0.5, speedup_low=0.4, speedup_high=0.6))
    assert found.code == "slower-than-eager"
    assert found.code in CODES
    assert "2.00 times as long as eager on a CPU" in found.message


def test_slower_within_the_noise_is_no_finding():
    assert verdicts(benchmark(speedup=0.9, speedup_low=0.7, speedup_high=1.1)) == ()


def test_different_results_are_a_finding_with_the_figures():
    numerics = Numerics(
        Agreement.DIFFERS,
        max_abs_error=0.25,
        max_rel_error=0.1,
        eager_float64_error=1e-7,
        compiled_float64_error=0.1,
    )
    (found,) = verdicts(benchmark(numerics=numerics))
    assert found.code == "numerics-mismatch"
    assert found.code in CODES
    assert all(figure in found.message for figure in ("0.25", "0.1", "1e-07"))


def test_a_difference_without_figures_says_its_reason():
    (found,) = verdicts(benchmark(numerics=Numerics(Agreement.DIFFERS, note="value 0 is NaN on one side")))
    assert "value 0 is NaN on one side" in found.message


def test_a_refused_benchmark_has_no_verdict():
    assert verdicts(benchmark(refused="Nothing was compiled.")) == ()
