"""A recurrent layer is one operation, with the values, gradients and limits that a card's has."""

from collections.abc import Callable
from typing import Any

import pytest

from simgpu import support

pytestmark = pytest.mark.slow
PROGRAMS = support.names("recurrent")
Both = Callable[[str], tuple[Any, Any]]


@pytest.fixture(scope="module")
def both() -> Both:
    cpu, simulated = support.run("recurrent", "cpu"), support.run("recurrent", "sim:H200")
    return lambda name: (cpu[name], simulated[name])


@pytest.mark.parametrize("name", [name for name in PROGRAMS if not name.startswith("card_")])
def test_same_as_on_the_cpu(both: Both, name: str) -> None:
    cpu, simulated = both(name)
    assert "error" not in cpu, cpu["error"]
    assert "error" not in simulated, simulated["error"]
    assert [sync for sync in simulated["syncs"] if sync[-1] is not None] == []  # nothing was guessed
    assert support.close(cpu["result"], simulated["result"], 1e-4), (cpu["result"], simulated["result"])


@pytest.fixture
def on_card(both: Both) -> Callable[[str], Any]:
    def result(name: str) -> Any:
        record = both(f"card_{name}")[1]
        assert "error" not in record, record["error"]
        return record["result"]

    return result


def test_a_large_layer_costs_nothing_while_nobody_looks(both: Both, on_card: Callable[[str], Any]) -> None:
    shapes, stride, seconds, _ = on_card("large")
    assert shapes == [[16, 512, 1024], [4, 16, 1024], [4, 16, 1024], [4096, 1024]]
    assert stride == [1024, 16 * 1024, 1]  # steps come first in memory, whatever the program puts first
    assert seconds < 1  # of CPU time, with the backward; op by op it is more than 30
    (look,) = (sync for sync in both("card_large")[1]["syncs"] if sync[0] == "item")
    assert "operations on the CPU" in look[-1]  # and a look says that it would cost too much


def test_backward_has_the_limits_of_cudnn(on_card: Callable[[str], Any]) -> None:
    twice, evaluation = on_card("limits")
    assert "differentiate twice" in twice
    assert evaluation == "cudnn RNN backward can only be called in training mode"


def test_autocast_makes_it_float16_whatever_the_type(on_card: Callable[[str], Any]) -> None:
    half, brain, exact = on_card("autocast")
    assert half == brain == ["torch.float16", "torch.float16", "torch.float16", "torch.float32"]
    assert exact == "torch.float64"


def test_dropout_obeys_the_seed(on_card: Callable[[str], Any]) -> None:
    assert on_card("dropout") == [True, False, True, True]


def test_lengths_stay_on_the_cpu(both: Both, on_card: Callable[[str], Any]) -> None:
    expected = "'lengths' argument should be a 1D CPU int64 tensor, but got 1D cuda:0 Long tensor"
    assert on_card("lengths_on_the_device") == expected
    what = {sync[0] for sync in both("packed_padded")[1]["syncs"]}
    assert not what & {"_pack_padded_sequence"}  # packing does not wait for the device
