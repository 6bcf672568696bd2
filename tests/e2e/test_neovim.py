"""A real Neovim with the real server, as a user's configuration starts it."""

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
