"""Arguments that a kernel takes for another type than they have: flagged where the result is wrong, and only there."""

from __future__ import annotations

import random

import pytest

torch = pytest.importorskip("torch")

from inductoscope.compiler.compat import kernel_calls  # noqa: E402
from lower.support.driver import lower  # noqa: E402

pytestmark = pytest.mark.slow


def jitter(x):
    y = x.relu()
    return y + random.uniform(-1.0, 1.0)


def mismatches(function, *args):
    facts = lower(lambda: torch.compile(function)(*args))
    assert facts.problems == ()
    assert facts.kernels
    return [finding for finding in facts.findings if finding.code == "numerics-mismatch"]


def test_the_point_exists():
    assert kernel_calls.KERNEL_CALL.exists()


def test_a_python_random_number_reaches_a_kernel_as_another_type():
    (found,) = mismatches(jitter, torch.zeros(4))
    assert found.file == __file__
    assert found.line == jitter.__code__.co_firstlineno + 2
    assert "written for float" in found.message
    assert "float64 tensor" in found.message
    assert "nothing was measured" in found.message


def test_the_backward_pass_reads_the_same_argument():
    weight = torch.ones(4, requires_grad=True)

    def program():
        torch.compile(lambda w: (w.sin() * random.uniform(1.0, 2.0)).sum())(weight).backward()

    found = [finding for finding in lower(program).findings if finding.code == "numerics-mismatch"]
    assert len({finding.message.partition(":")[2][:60] for finding in found}) == 2  # two kernels


def test_the_type_that_the_program_gives_such_numbers_counts():
    torch.set_default_dtype(torch.float64)
    try:
        assert mismatches(jitter, torch.zeros(4)) == []
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (lambda x: x + random.randint(1, 9), (torch.zeros(4),)),
        (lambda x, k: x * k, (torch.zeros(4), 1.5)),
        (lambda x, y: x * y, (torch.zeros(4), torch.zeros(4, dtype=torch.float64))),
        (lambda x, s: x * s, (torch.zeros(4), torch.tensor(1.5, dtype=torch.float64))),
        (lambda x, m, i: torch.where(m, x, x[i]), (torch.zeros(4), torch.ones(4) > 0, torch.arange(4))),
    ],
)
def test_arguments_of_the_declared_type_are_no_finding(function, args):
    assert mismatches(function, *args) == []


def test_numbers_that_become_inputs_later_are_no_finding():
    compiled = torch.compile(lambda x, k: x * k + 1)
    facts = lower(lambda: [compiled(torch.zeros(4), k) for k in (1.5, 2.5, 3.5)])
    assert [finding for finding in facts.findings if finding.code == "numerics-mismatch"] == []


@pytest.mark.parametrize(
    ("declared", "dtype", "same"),
    [
        ("float", torch.float32, True),
        ("float", torch.float64, False),
        ("bool", torch.bool, True),
        ("int64_t", torch.int64, True),
        (torch.float32, torch.float32, True),
        (torch.float32, torch.float64, False),
    ],
)
def test_c_types_and_dtypes_are_compared_as_what_they_hold(declared, dtype, same):
    assert kernel_calls.holds(declared, dtype) is same
