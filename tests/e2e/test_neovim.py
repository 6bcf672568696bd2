"""A real Neovim with the real server, as a user's configuration starts it."""

import re
import sys
from pathlib import Path

import pytest

from support.editors import require_installed, run

HERE = Path(__file__).parent

pytestmark = [pytest.mark.editor, pytest.mark.slow]


def test_model_in_neovim(folder):
    require_installed("nvim")
    said = run(
        "bash",
        HERE.parent / "clients" / "nvim_run.sh",
        HERE / "model_in_neovim.lua",
        INDUCTOSCOPE_PYTHON=sys.executable,
        INDUCTOSCOPE_FOLDER=folder,
        NVIM_TIMEOUT="280",
    )
    assert "0 failed" in said


def test_the_configuration_of_the_page_in_neovim(folder, tmp_path):
    require_installed("nvim")
    page = (HERE.parents[1] / "docs" / "editors.md").read_text(encoding="utf-8")
    configuration = re.search(r"```lua\n(.*?)```", page, re.DOTALL)
    assert configuration is not None
    (tmp_path / "init.lua").write_text(configuration[1])
    said = run(
        "bash",
        HERE.parent / "clients" / "nvim_run.sh",
        HERE / "page_in_neovim.lua",
        INDUCTOSCOPE_PAGE=tmp_path / "init.lua",
        INDUCTOSCOPE_PYTHON=sys.executable,
        INDUCTOSCOPE_FOLDER=folder,
        NVIM_TIMEOUT="280",
    )
    assert "0 failed" in said
