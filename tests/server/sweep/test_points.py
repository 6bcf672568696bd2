"""What a sweep consists of."""

from __future__ import annotations

import pytest

from inductoscope.protocol.bench import BenchOptions
from inductoscope.protocol.messages import Target, TargetKind
from inductoscope.server.config import Config
from inductoscope.server.planning import CheckError, Job
from inductoscope.server.sweep.points import Where, points, where_of
from inductoscope.server.targets import Scan, ScannedTarget


def job(name: str, inputs: object = "comment") -> Job:
    return Job(
        ScannedTarget(Target(f"/w/{name}.py", name, 1, TargetKind.FUNCTION, name), inputs), Scan((), ()), Config()
    )


def test_every_combination_is_a_point_of_its_own():
    found = points([job("f"), job("g")], ["x=f32[1]", "x=f32[2]"], [None, "max-autotune"], [where_of("cpu")])
    assert len(found) == 8
    assert len({one.text for one in found}) == 8
    assert found[0].target.comment == "x=f32[1]"
    assert found[1].request(BenchOptions(), 1.0).bench.mode == "max-autotune"


def test_targets_without_inputs_of_their_own_take_those_that_are_given():
    assert points([job("f", None)], [], [None], [where_of("cpu")]) == ()
    assert len(points([job("f", None)], ["x=f32[1]"], [None], [where_of("cpu")])) == 1


def test_inputs_that_cannot_be_read_are_refused():
    with pytest.raises(CheckError, match="--inputs 'x=f99"):
        points([job("f")], ["x=f99[1]"], [None], [where_of("cpu")])


def test_a_device_says_what_a_task_needs():
    assert where_of("cuda:H200") == Where("cuda", "H200")
    assert (where_of("cuda").gpus, where_of("cpu").gpus) == (1, 0)
    assert where_of("cuda:H200").text == "cuda:H200"


@pytest.mark.parametrize("device", ["sim:H200", "cpu:H200", "toaster"])
def test_only_real_devices_can_be_measured_on(device):
    with pytest.raises(CheckError, match="--devices"):
        where_of(device)
