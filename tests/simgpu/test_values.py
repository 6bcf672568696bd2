"""Values that a program looks at are those that the CPU computes, and none is guessed."""

from collections.abc import Callable
from typing import Any

import pytest

from simgpu import support

pytestmark = pytest.mark.slow
Both = Callable[[str, str], tuple[Any, Any]]


@pytest.fixture(scope="module")
def both() -> Both:
    found = {
        file: (support.run(file, "cpu"), support.run(file, "sim:H200")) for file in ("bodies", "values", "kernels")
    }
    return lambda file, name: (found[file][0][name], found[file][1][name])


CASES = [(file, name) for file in ("bodies", "values", "kernels") for name in support.names(file)]


@pytest.mark.parametrize(("file", "name"), CASES, ids=[f"{file}-{name}" for file, name in CASES])
def test_same_as_on_the_cpu(both: Both, file: str, name: str) -> None:
    cpu, simulated = both(file, name)
    assert "error" not in cpu, cpu["error"]
    assert "error" not in simulated, simulated["error"]
    assert [sync for sync in simulated["syncs"] if sync[-1] is not None] == []  # nothing was guessed
    assert support.close(cpu["result"], simulated["result"], 1e-4), (cpu["result"], simulated["result"])


def test_self_test_finds_nothing_off(both: Both) -> None:
    assert both("values", "self-test")[1] == {"notes": []}
