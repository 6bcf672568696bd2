"""A sweep on Ray, started on this machine."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from inductoscope.protocol import codec, messages
from inductoscope.protocol.bench import BenchOptions, Detail
from inductoscope.protocol.messages import Run, Target, TargetKind
from inductoscope.protocol.report import Rung
from inductoscope.server import planning
from inductoscope.server.planning import CheckError
from inductoscope.server.remote import closure
from inductoscope.server.sweep import cluster, task
from inductoscope.server.sweep.cluster import Settings
from inductoscope.server.sweep.points import points, where_of

SETTINGS = Settings("local", BenchOptions(detail=Detail.TIMES), 0.05, 120.0, sys.executable)
MODEL = """
import torch

BACKEND = "eager"
ENTRY = "f"

def f(x):
    if x.shape[0] == 13:
        import os
        os._exit(9)
    return torch.sin(x) * 2
"""


def parcel(files: object) -> dict[str, bytes]:
    found = closure.parcel(files)
    return {path: found.contents[key] for path, key in found.paths.items()}


def run_in_task(folder: Path, python: str = sys.executable) -> list[object]:
    model = folder / "model.py"
    model.write_text(MODEL)
    target = Target(str(model), "f", 7, TargetKind.FUNCTION, "f", comment="x=f32[13]")
    request = json.dumps(messages.to_wire(Run(1, target, "cpu", Rung.MEASURE)))
    worker = cluster.worker_of(Settings("local", BenchOptions(), 0.05, 120.0, python))
    return json.loads(task.run(parcel(closure.own_files()), parcel([str(model)]), worker, request))


def test_a_node_without_torch_says_so(tmp_path, monkeypatch):
    (tmp_path / "torch.py").write_text("raise ModuleNotFoundError(\"No module named 'torch'\", name='torch')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    hello, last = run_in_task(tmp_path)
    assert "has no torch" in hello["body"]["problem"]
    assert last == hello


def test_a_worker_that_cannot_even_start_is_quoted(tmp_path):
    script = tmp_path / "python"
    script.write_text("#!/bin/sh\necho 'Illegal instruction' >&2\nexit 132\n")
    script.chmod(0o755)
    with pytest.raises(task.WorkerEndedError, match="Illegal instruction"):
        run_in_task(tmp_path, str(script))


def test_without_ray_there_is_a_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(CheckError, match=r"pip install 'inductoscope\[ray\]'"):
        list(cluster.run((), SETTINGS))


def test_the_task_travels_without_inductoscope():
    cloudpickle = pytest.importorskip("ray.cloudpickle", reason="Ray is not installed")
    cloudpickle.register_pickle_by_value(task)
    text = cloudpickle.dumps(task.run).hex()
    cloudpickle.unregister_pickle_by_value(task)
    code = (
        f"import sys; sys.modules['inductoscope'] = None; import pickle; print(pickle.loads(bytes.fromhex('{text}')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.startswith("<function run"), done.stderr


@pytest.mark.slow
def test_points_are_measured_as_tasks_and_those_that_crash_are_told(tmp_path):
    pytest.importorskip("ray", reason="Ray is not installed")
    model = tmp_path / "model.py"
    model.write_text(MODEL)
    jobs = planning.plan(planning.Options((model,))).jobs
    wanted = points(jobs, ["x=f32[8]", "x=f32[13]"], [None], [where_of("cpu")])
    done = {one.point.inputs: one for one in cluster.run(wanted, SETTINGS)}
    good, bad = done["x=f32[8]"], done["x=f32[13]"]
    assert good.problem is None
    assert good.report.file == str(model)
    assert good.report.benchmark.compiled.us > 0
    assert bad.report is None
    assert "the worker ended with code 9" in bad.problem
    assert codec.to_json(good.report)["benchmark"]["inputs"] == ["x=f32[8]"]


def test_a_worker_that_is_killed_is_lost_and_worth_another_try(tmp_path):
    script = tmp_path / "python"
    script.write_text("#!/bin/sh\nkill -9 $$\n")
    script.chmod(0o755)
    with pytest.raises(task.WorkerLostError, match="code -9"):
        run_in_task(tmp_path, str(script))
