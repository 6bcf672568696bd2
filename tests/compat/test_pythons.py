"""The worker's code can be read by every supported Python, and what needs no torch can be imported there."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WORKER = (ROOT / "protocol", ROOT / "compiler")
PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")

READ = """
import importlib, importlib.machinery, importlib.util, pathlib, sys
parts = [pathlib.Path(part) for part in sys.argv[1:]]
files = [file for part in parts for file in part.rglob("*.py")]
for file in files:
    compile(file.read_text(encoding="utf-8"), str(file), "exec", dont_inherit=True)
spec = importlib.machinery.ModuleSpec("inductoscope", None, is_package=True)
spec.submodule_search_locations = [str(part / "inductoscope") for part in parts]
sys.modules["inductoscope"] = importlib.util.module_from_spec(spec)
imported = 0
for file in files:
    part = next(part for part in parts if part in file.parents)
    name = ".".join(file.relative_to(part).with_suffix("").parts).removesuffix(".__init__")
    try:
        importlib.import_module(name)
        imported += 1
    except ModuleNotFoundError as error:
        if error.name.partition(".")[0] not in ("torch", "triton", "networkx", "sympy", "numpy"):
            raise
print(len(files), imported)
"""


@pytest.mark.parametrize("version", PYTHONS)
def test_the_worker_is_read_by_every_supported_python(version: str) -> None:
    python = _interpreter(version)
    if python is None:
        pytest.skip(f"no Python {version} here")
    done = subprocess.run(
        [python, "-I", "-W", "error", "-c", READ, *map(str, WORKER)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    files, imported = map(int, done.stdout.split())
    assert files > 100
    assert imported > 20


def _interpreter(version: str) -> str | None:
    """An interpreter of that version; one without torch if there is, which is the point."""
    installed = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))
    candidates = [*map(str, installed), shutil.which(f"python{version}")]
    if sys.version_info[:2] == tuple(map(int, version.split("."))):
        candidates.append(sys.executable)
    return next((one for one in candidates if one is not None and _works(one)), None)


def _works(python: str) -> bool:
    return subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode == 0
