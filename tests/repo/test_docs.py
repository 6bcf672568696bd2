"""The documentation keeps up with the code."""

from pathlib import Path

import pytest

from inductoscope.protocol.codes import CODES

ROOT = Path(__file__).resolve().parents[2]
PAGES = ROOT / "docs" / "diagnostics"


@pytest.mark.parametrize("code", sorted(CODES))
def test_each_code_has_a_page_with_its_name_as_title(code: str) -> None:
    page = (PAGES / f"{code}.md").read_text(encoding="utf-8")
    assert page.startswith(f"# `{code}`: ")
    assert len(page.split()) > 20


def test_no_page_without_a_code() -> None:
    assert {page.stem for page in PAGES.glob("*.md")} == set(CODES)


def test_each_module_of_the_product_is_in_the_code_map() -> None:
    code_map = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    for portion in ("protocol", "compiler", "server"):
        package = ROOT / portion / "inductoscope" / portion
        for entry in sorted(package.iterdir()):
            if entry.name.startswith("_") or entry.name == "py.typed":
                continue
            assert f"`{entry.name}`" in code_map or f"`{entry.name}/`" in code_map, f"{entry} is not in the code map"
