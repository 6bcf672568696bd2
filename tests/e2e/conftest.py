"""What the tests with real editors share."""

import os
import shutil
from pathlib import Path

import pytest

from inductoscope.protocol._version import __version__

HERE = Path(__file__).parent
EXTENSION = HERE.parents[1] / "vscode-extension"


@pytest.fixture(scope="session")
def vsix() -> Path:
    """The packaged extension."""
    package = EXTENSION / f"inductoscope-{__version__}.vsix"
    if not package.is_file():
        pytest.fail(f"The extension is not packaged ({package} is missing): run `make vsix`.", pytrace=False)
    return package


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the sample workspace."""
    return Path(shutil.copytree(HERE / "workspace", tmp_path / "workspace"))


@pytest.fixture
def pictures(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """Where screenshots and logs go: a folder in E2E_PICTURES where that is set, else one that pytest keeps a while."""
    kept = os.environ.get("E2E_PICTURES")
    chosen = Path(kept).resolve() / request.node.name if kept else tmp_path / "pictures"
    chosen.mkdir(parents=True, exist_ok=True)
    return chosen
