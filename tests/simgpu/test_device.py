"""The simulated device as a program sees it."""

from collections.abc import Callable
from typing import Any

import pytest

from simgpu import support

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def result() -> Callable[[str], Any]:
    found = support.run("device", "sim:H200")

    def of(name: str) -> Any:
        assert "error" not in found[name], found[name]["error"]
        return found[name]["result"]

    return of


def test_figures(result: Callable[[str], Any]) -> None:
    assert result("properties") == ["NVIDIA H200", 9, 0, 132, True]


def test_there_is_one_device(result: Callable[[str], Any]) -> None:
    assert result("there_is_one_device") == [True, 1, True, "cuda:0"]
    assert result("other_ordinals") == ["CUDA error: invalid device ordinal"] * 2


def test_streams_and_events_do_nothing(result: Callable[[str], Any]) -> None:
    assert result("streams_and_events") == [[2.0, 2.0], True]


def test_one_device_a_process(result: Callable[[str], Any]) -> None:
    same, other, vendor = result("simulated_again")
    assert same
    assert "already simulates NVIDIA H200" in other
    assert "needs a process of its own" in vendor


def test_a_warm_parent_serves_other_devices_in_forked_children(result: Callable[[str], Any]) -> None:
    assert result("retargeted_in_a_forked_child") == [0, "NVIDIA H200"]


def test_moving_keeps_containers_modules_and_leaves(result: Callable[[str], Any]) -> None:
    assert result("moved") == [True, [None, "text"], True, [True, True, True], True]
