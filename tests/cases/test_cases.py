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
