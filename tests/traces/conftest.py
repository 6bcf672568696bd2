"""The recorded traces, unpacked once: a folder for each version of torch, with `cold.log`, `warm.log` and more."""

from __future__ import annotations

import shutil
import tarfile
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("recorded")
    with tarfile.open(HERE / "recorded.tar.xz") as archive:
        for member in archive:
            path = folder / member.name
            path.parent.mkdir(exist_ok=True)
            content = archive.extractfile(member)
            assert content is not None
            path.write_bytes(content.read())
    return folder


@pytest.fixture(scope="session")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The recorded programs, in the folder that `--sources` would name: the traces are of another machine."""
    folder = tmp_path_factory.mktemp("sources")
    for program in (HERE / "programs").glob("*.py"):
        shutil.copy(program, folder)
    return folder
