"""Real editors for tests: where they are, and how a driver script is run.  What is missing fails the test."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

WORKBENCH = os.environ.get("WORKBENCH_VERSION", "4.139.1")


def require_installed(*programs: str) -> None:
    """Fails the test unless the programs are there that `tests/clients/install.sh` wrote down under these names."""
    cache = Path(os.environ.get("CLIENTS_CACHE") or _cache_home() / "editor-clients")
    manifest = cache / f"manifest-{WORKBENCH}.json"
    if not manifest.is_file():
        pytest.fail(f"The editors are not installed ({manifest} is missing): run `make clients`.", pytrace=False)
    installed = json.loads(manifest.read_text())
    for name in programs:
        if not Path(installed[name]).exists():
            pytest.fail(f"{name} is not installed ({installed[name]} is missing): run `make clients`.", pytrace=False)


def run(*command: str | Path, **environment: str | Path) -> str:
    """Runs a driver script to its end and gives what it printed; when it fails, the test fails and shows all of it."""
    env = {**os.environ, **{name: str(value) for name, value in environment.items()}}
    done = subprocess.run(command, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if done.returncode != 0:
        pytest.fail(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stdout}", pytrace=False)
    return done.stdout


def _cache_home() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
