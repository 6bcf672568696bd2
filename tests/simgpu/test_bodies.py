"""Whatever a program does to its parameters and buffers, their values on the simulated device are those of the CPU."""

from collections.abc import Callable
from typing import Any

import pytest

from simgpu import support

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def both() -> Callable[[str], tuple[Any, Any]]:
    cpu, simulated = support.run("bodies", "cpu"), support.run("bodies", "sim:H200")
    return lambda name: (cpu[name], simulated[name])


@pytest.mark.parametrize("name", support.names("bodies"))
def test_same_as_on_the_cpu(both: Callable[[str], tuple[Any, Any]], name: str) -> None:
    cpu, simulated = both(name)
    assert "error" not in cpu, cpu["error"]
    assert "error" not in simulated, simulated["error"]
    assert [sync for sync in simulated["syncs"] if sync[-1] is not None] == []  # nothing was guessed
    assert support.close(cpu["result"], simulated["result"], 1e-6), (cpu["result"], simulated["result"])
