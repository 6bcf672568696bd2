"""The name of an environment changes when anything installed does, and only then."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from inductoscope.server import environments
from inductoscope.server.environments import Environments

PYTHON = (sys.executable,)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of packages that the interpreter imports from."""
    packages = tmp_path / "packages"
    (packages / "one-1.0.dist-info").mkdir(parents=True)
    monkeypatch.setenv("PYTHONPATH", str(packages))
    return packages


async def test_it_stays_while_nothing_changes(folder: Path) -> None:
    one = Environments()
    first = await one.name(PYTHON)
    assert first is not None
    (folder / "code.py").touch()
    (folder / "__pycache__").mkdir()
    assert await one.name(PYTHON) == await Environments().name(PYTHON) == first


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: (folder / "two-1.0.dist-info").mkdir(),
        lambda folder: (folder / "one-1.0.dist-info").rename(folder / "one-1.1.dist-info"),
        lambda folder: os.utime(folder / "one-1.0.dist-info", (1, 1)),
        lambda folder: (folder / "editable.pth").touch(),
        lambda folder: (folder / "torch").mkdir() or (folder / "torch" / "version.py").touch(),
    ],
    ids=["installed", "upgraded", "installed again", "linked", "torch built in place"],
)
async def test_it_changes_with_what_is_installed(folder: Path, change: object) -> None:
    one = Environments()
    first = await one.name(PYTHON)
    change(folder)  # type: ignore[operator]
    assert await one.name(PYTHON) != first


async def test_variables_that_torch_looks_at_count_and_others_do_not(folder: Path) -> None:
    names = [
        await Environments({"PATH": path, **more}).name(PYTHON)
        for path, more in [("/a", {}), ("/b", {}), ("/a", {"TORCHINDUCTOR_MAX_AUTOTUNE": "1"})]
    ]
    assert names[0] == names[1] != names[2]


@pytest.mark.parametrize("text", ["exit 1", "echo hello", "kill -9 $$"])
async def test_an_interpreter_that_does_not_tell_has_no_name_and_is_asked_once(tmp_path: Path, text: str) -> None:
    program = tmp_path / "python"
    program.write_text(f"#!/bin/sh\necho asked >> {tmp_path}/log\n{text}\n")
    program.chmod(0o755)
    one = Environments()
    assert [await one.name((str(program),)) for _ in range(2)] == [None, None]
    assert (tmp_path / "log").read_text() == "asked\n"


async def test_one_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environments, "_TIMEOUT_S", 0.2)
    program = tmp_path / "python"
    program.write_text(f"#!/bin/sh\necho $$ > {tmp_path}/pid\nexec tail -f /dev/null\n")
    program.chmod(0o755)
    assert await asyncio.wait_for(Environments().name((str(program),)), 10) is None


async def test_one_that_is_not_there_has_no_name(tmp_path: Path) -> None:
    assert await Environments().name((str(tmp_path / "python"),)) is None
