import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from inductoscope.compiler import scratch as compiler_scratch
from inductoscope.protocol import scratch


@pytest.fixture(autouse=True)
def _temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for variable in ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR"):
        monkeypatch.setenv(variable, "before")


def test_what_dead_workers_left_is_removed_and_nothing_else(tmp_path: Path) -> None:
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    left = tmp_path / f"inductoscope-worker-{dead.pid}-abc"
    alive = tmp_path / f"inductoscope-worker-{os.getpid()}-abc"
    other = tmp_path / "inductoscope-worker-x-abc"
    for folder in (left, alive, other):
        (folder / "cache").mkdir(parents=True)
    made = compiler_scratch.make()
    assert sorted(tmp_path.iterdir()) == sorted([alive, other, made])
    scratch.remove(made)
    assert not made.exists()


def test_the_caches_of_torch_and_triton_go_to_the_folder(tmp_path: Path) -> None:
    compiler_scratch.keep_caches_in(tmp_path)
    folders = {os.environ["TORCHINDUCTOR_CACHE_DIR"], os.environ["TRITON_CACHE_DIR"]}
    assert len(folders) == 2
    assert {str(Path(folder).parent) for folder in folders} == {str(tmp_path)}
