"""The comparison of compiled and eager results."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pytest
import torch

from inductoscope.compiler.bench.numerics import compare, snapshot
from inductoscope.protocol.report import Agreement, Numerics

NAN, INF = math.nan, math.inf


def compared(eager: object, compiled: object, float64: object = None) -> Numerics:
    return compare(snapshot(eager), snapshot(compiled), None if float64 is None else snapshot(float64))


@pytest.mark.parametrize("values", [[1.0, 2.0], [NAN, 1.0], [INF, -INF], []])
def test_equal_values_are_identical_also_where_they_are_not_numbers(values):
    result = compared(torch.tensor(values), torch.tensor(values))
    assert (result.agreement, result.max_abs_error, result.max_rel_error) == (Agreement.IDENTICAL, 0.0, 0.0)


@pytest.mark.parametrize("odd", [NAN, INF])
def test_a_value_that_is_finite_on_one_side_only_is_a_difference(odd):
    result = compared(torch.tensor([1.0, 2.0]), torch.tensor([1.0, odd]))
    assert result.agreement is Agreement.DIFFERS
    assert "1 of 2 elements" in result.note
    assert result.max_abs_error is None


def test_infinities_of_opposite_sign_differ():
    assert compared(torch.tensor([INF]), torch.tensor([-INF])).agreement is Agreement.DIFFERS


def test_errors_are_absolute_and_relative_to_the_largest_magnitude():
    result = compared(torch.tensor([1.0, 4.0]), torch.tensor([1.5, 4.0]))
    assert (result.agreement, result.max_abs_error, result.max_rel_error) == (Agreement.DIFFERS, 0.5, 0.125)


def test_without_a_reference_rounding_is_told_by_the_digits_of_the_type():
    right, off = torch.tensor([1.0]), torch.tensor([1.01])
    assert compared(right, off).agreement is Agreement.DIFFERS
    assert compared(right.bfloat16(), off.bfloat16()).agreement is Agreement.CLOSE


def test_against_float64_an_error_as_large_as_eager_s_own_is_rounding():
    exact = torch.tensor([1.0], dtype=torch.float64)
    result = compared(torch.tensor([1.001]), torch.tensor([0.998]), exact)
    assert result.agreement is Agreement.CLOSE
    assert result.compiled_float64_error == pytest.approx(0.002, rel=1e-3)


def test_against_float64_a_much_larger_error_than_eager_s_is_a_difference():
    exact = torch.tensor([1.0], dtype=torch.float64)
    assert compared(torch.tensor([1.0]), torch.tensor([1.0001]), exact).agreement is Agreement.DIFFERS


def test_a_reference_that_is_not_in_double_precision_is_not_used():
    result = compared(torch.tensor([1.0]), torch.tensor([1.0 + 1e-6]), torch.tensor([1.0]))
    assert (result.agreement, result.eager_float64_error) == (Agreement.CLOSE, None)


def test_whole_numbers_must_be_equal():
    result = compared(torch.tensor([1, 2, 3]), torch.tensor([1, 2, 4]))
    assert result.agreement is Agreement.DIFFERS
    assert "1 of 3" in result.note


def test_whole_numbers_that_rounding_decides_may_differ():
    result = compared(torch.tensor([7]), torch.tensor([3]), torch.tensor([3]))
    assert result.agreement is Agreement.CLOSE


def test_another_shape_or_type_is_a_difference():
    assert compared(torch.zeros(2), torch.zeros(3)).agreement is Agreement.DIFFERS
    result = compared(torch.zeros(2), torch.zeros(2).half())
    assert "float32[2] in eager, float16[2] compiled" in result.note


def test_values_are_found_inside_containers_and_the_worst_one_counts():
    @dataclass
    class Cache:
        keys: list[torch.Tensor]
        length: int

    eager = ({"a": torch.ones(1)}, Cache([torch.ones(1)], 3))
    assert compared(eager, eager).agreement is Agreement.IDENTICAL
    assert compared(eager, ({"a": torch.ones(1)}, Cache([torch.ones(1)], 4))).agreement is Agreement.DIFFERS


def test_a_container_that_holds_itself_ends():
    loop: list[object] = [torch.ones(1)]
    loop.append(loop)
    assert compared(loop, loop).agreement is Agreement.IDENTICAL


def test_nothing_to_compare_is_said():
    result = compared("text", "text")
    assert result.agreement is Agreement.UNKNOWN
    assert result.note


def test_a_snapshot_does_not_follow_later_writes():
    x = torch.zeros(2)
    before = snapshot(x)
    x += 1
    assert torch.equal(before[0], torch.zeros(2))


def test_complex_results_are_compared():
    result = compared(torch.tensor([3 + 4j]), torch.tensor([3 + 4.5j]))
    assert result.agreement is Agreement.DIFFERS
    assert result.max_abs_error == pytest.approx(0.5)
