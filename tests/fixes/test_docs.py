"""Each cause has a section of its own in docs/fixes.md, and each section a cause."""

from __future__ import annotations

import re
from pathlib import Path

from inductoscope.server.features.fixes.registry import CAUSES

PAGE = Path(__file__).parents[2] / "docs" / "fixes.md"


def test_each_cause_has_a_section() -> None:
    sections = re.findall(r"^## (.+)$", PAGE.read_text(), re.M)
    assert sections == [cause.name for cause in CAUSES]
