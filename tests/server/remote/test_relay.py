"""Runs through a runner's command: everything that needs no torch."""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path

import pytest

from inductoscope.protocol.messages import FailureKind, Target, TargetKind
from inductoscope.protocol.report import Rung
from inductoscope.server import config
from inductoscope.server.config import ConfigError
from inductoscope.server.remote import RunnerError, closure, remote_command
from inductoscope.server.runner import make_runner
from inductoscope.server.settings import Settings
from inductoscope.server.workers import RunOutcome, RunRequest, Spare, WorkerPool

TORCHLESS = "raise ModuleNotFoundError(\"No module named 'torch'\", name='torch')\n"


async def outcome(runner: list[str], folder: Path, python: str = sys.executable) -> RunOutcome:
    model = folder / "model.py"
    model.write_text("def f(x): return x\n")
    pool = WorkerPool("elsewhere", spare=Spare.NONE, command=remote_command(runner, python, (), str(folder)))
    target = Target(str(model), "f", 1, TargetKind.FUNCTION, "f")
    try:
        return await pool.run(RunRequest(target, "cpu", Rung.MEASURE), lambda message: None)
    finally:
        await pool.close()


def agent_in(folder: Path, **variables: object) -> list[str]:
    """A local command as the runner, with a folder of its own for the agent."""
    settings = {"INDUCTOSCOPE_AGENT_DIR": folder, **variables}
    return ["env", *(f"{name}={value}" for name, value in settings.items())]


async def test_a_runner_that_is_not_there_is_named(tmp_path):
    result = await outcome([str(tmp_path / "no-such-ssh")], tmp_path)
    assert "no-such-ssh cannot be started: No such file or directory" in result.failure.message


async def test_a_runner_that_ends_at_once_is_quoted(tmp_path):
    script = tmp_path / "refuse"
    script.write_text("#!/bin/sh\necho 'Permission denied (publickey).' >&2\nexit 255\n")
    script.chmod(0o755)
    result = await outcome([str(script)], tmp_path)
    assert "ended with exit code 255 before Python ran there" in result.failure.message
    assert "Permission denied (publickey)" in result.failure.message


async def test_an_interpreter_that_is_not_there_is_told_from_the_machine(tmp_path):
    result = await outcome(["env"], tmp_path, python="no-such-python")
    assert "no-such-python" in result.failure.message


async def test_a_machine_without_torch_says_so_and_keeps_nothing_but_the_files_that_were_sent(tmp_path):
    (tmp_path / "fake").mkdir()
    (tmp_path / "fake" / "torch.py").write_text(TORCHLESS)
    folder = tmp_path / "agent"
    result = await outcome(agent_in(folder, PYTHONPATH=tmp_path / "fake"), tmp_path)
    assert result.failure.kind is FailureKind.NO_TORCH
    assert "has no torch" in result.failure.message
    assert result.hello.gpu is any(Path(node).exists() for node in ("/dev/nvidia0", "/dev/kfd", "/dev/dxg"))
    kept = {blob.name: hashlib.sha256(blob.read_bytes()).hexdigest() for blob in (folder / "blobs").iterdir()}
    assert len(kept) > 50
    assert all(name == content for name, content in kept.items())


async def test_what_was_sent_once_is_not_sent_again(tmp_path):
    (tmp_path / "fake").mkdir()
    (tmp_path / "fake" / "torch.py").write_text(TORCHLESS)
    runner = agent_in(tmp_path / "agent", PYTHONPATH=tmp_path / "fake")
    await outcome(runner, tmp_path)
    blobs = tmp_path / "agent" / "blobs"
    first = {blob.name: blob.stat().st_ino for blob in blobs.iterdir()}
    await outcome(runner, tmp_path)
    assert {name: (blobs / name).stat().st_ino for name in first} == first


async def test_an_editor_measures_on_the_machine_that_the_project_names(tmp_path):
    (tmp_path / "pyproject.toml").write_text('[tool.inductoscope]\nrunner = ["no-such-ssh", "gpu-box"]\n')
    (tmp_path / "model.py").write_text("def f(x): return x\n")
    target = Target(str(tmp_path / "model.py"), "f", 1, TargetKind.FUNCTION, "f")
    runner = make_runner(Settings())
    found = await runner.run(RunRequest(target, "cpu", Rung.MEASURE, cwd=str(tmp_path)), lambda message: None)
    await runner.close()
    assert "The runner no-such-ssh gpu-box cannot be started" in found.failure.message


def test_a_runner_has_to_be_words(tmp_path):
    (tmp_path / "pyproject.toml").write_text("[tool.inductoscope]\nrunner = []\n")
    with pytest.raises(ConfigError, match=r"runner of .* has to be a list of words"):
        config.nearest(tmp_path)


@pytest.mark.parametrize("python", ["/opt/my python/bin/python", "python3; rm x", "$(python)"])
def test_an_interpreter_that_a_shell_would_read_otherwise_is_refused(python):
    with pytest.raises(RunnerError, match="characters"):
        remote_command(["ssh", "box"], python, (), os.sep)


def test_the_closure_is_what_the_target_imports_with_its_packages(tmp_path):
    (tmp_path / "pkg" / "inner").mkdir(parents=True)
    for name in ("pkg/__init__.py", "pkg/inner/__init__.py", "pkg/unused.py"):
        (tmp_path / name).write_text("")
    (tmp_path / "pkg" / "inner" / "helper.py").write_text("from ..sibling import y\n")
    (tmp_path / "pkg" / "sibling.py").write_text("y = 1\n")
    model = tmp_path / "model.py"
    model.write_text("import os\nfrom pkg.inner.helper import y\n")
    found = closure.of_target(str(model), ())
    relative = {Path(file).relative_to(tmp_path).as_posix() for file in found}
    assert relative == {"model.py", "pkg/__init__.py", "pkg/inner/__init__.py", "pkg/inner/helper.py", "pkg/sibling.py"}
