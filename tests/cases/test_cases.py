"""Every case file is reported exactly, by the command line as users call it."""

from __future__ import annotations

import sys

import pytest
from cases import score

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.mark.parametrize("case", list(score.cases("cpu")), ids=lambda case: case.name)
def test_case_is_exact(case: score.Case) -> None:
    verdict = score.judge(case, score.check(sys.executable, case, "cpu", timeout=240))
    assert verdict.exact, verdict


# What Dynamo finds depends neither on where `exercise` makes its tensors nor on how the device is simulated.
@pytest.mark.parametrize("name", ["indexed_self_add", "parameter_shapes", "requires_grad_flips", "try_block_break"])
def test_a_case_is_exact_on_a_simulated_gpu(name: str) -> None:
    pytest.importorskip("triton")
    (case,) = score.cases("sim:H200", only=name)
    verdict = score.judge(case, score.check(sys.executable, case, "sim:H200", timeout=240))
    assert verdict.exact, verdict
