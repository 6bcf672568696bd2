"""The simulated device's generator."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402

from inductoscope.compiler.simgpu.rng import DeviceGenerator  # noqa: E402

pytestmark = pytest.mark.slow


def test_a_clone_goes_on_from_the_same_state_and_is_one_of_its_own():
    """Under fake tensors too, where AOTAutograd clones it for a checkpointed dropout."""
    generator = DeviceGenerator().manual_seed(3)
    generator.draw()
    with FakeTensorMode():
        clone = generator.clone_state()
    assert clone is not generator
    assert [clone.draw(), clone.draw()] == [generator.draw(), generator.draw()]
