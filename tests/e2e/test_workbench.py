"""A real VS Code with the packaged extension."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.editors import require_installed, run

HERE = Path(__file__).parent

pytestmark = [
    pytest.mark.editor,
    pytest.mark.slow,
    pytest.mark.xdist_group("workbench"),  # one at a time: it takes a browser and 1.2 GB
    pytest.mark.timeout(500),
]


@pytest.fixture(autouse=True)
def installed():
    require_installed("workbench", "chromium", "driver")
    if shutil.which("node") is None:
        pytest.fail("node is not installed; the drivers need node 20 or newer.", pytrace=False)


def test_model_in_workbench(vsix, folder, pictures):
    said = run("node", HERE / "model_in_workbench.mjs", vsix, folder, sys.executable, pictures)
    assert said.count("ok - ") == 6
    assert (pictures / "hover.png").stat().st_size > 10_000


def _python_that_leaves_a_trace(file: Path, trace: Path) -> None:
    file.parent.mkdir(parents=True)
    file.write_text(f"#!/bin/sh\necho started > '{trace}'\nexec '{sys.executable}' \"$@\"\n")
    file.chmod(0o755)


def test_restricted_workspace_is_not_run(vsix, folder, pictures, tmp_path):
    trace = folder / "ran"
    _python_that_leaves_a_trace(folder / ".venv" / "bin" / "python", trace)
    model = folder / "model.py"
    model.write_text(f"open({str(trace)!r}, 'w').close()\n" + model.read_text())
    # Outside the folder there is a Python that has nothing installed: the server comes from the extension.
    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", bare], check=True)
    assert not trace.exists()
    said = run("node", HERE / "restricted_workbench.mjs", vsix, folder, bare / "bin" / "python3", pictures)
    assert "ok - a restricted workspace is read and not run" in said
