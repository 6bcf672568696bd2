"""Looks at device values in the program's own words."""

from __future__ import annotations

from pathlib import Path

import pytest

from inductoscope.compiler.looks_in_source import said


@pytest.mark.parametrize(
    ("source", "line", "what", "words"),
    [
        ("def f(x):\n    if x.sum() > 0:\n        return x\n", 2, "item", "if x.sum() > 0"),
        ("while error > 1e-3:\n    error = step()\n", 1, "item", "while error > 1e-3"),
        ("assert x.all(), 'no'\n", 1, "item", "assert x.all()"),
        ("y = a if mask.any() else b\n", 1, "item", "if mask.any()"),
        ("n = x.max().item() + 1\n", 1, "item", "x.max().item()"),
        ("if loss.item() > 3:\n    pass\n", 1, "item", "loss.item()"),
        ("total += float(loss)\n", 1, "item", "float(loss)"),
        ("print(loss)\n", 1, "copy to CPU", "print(loss)"),
        ("y = x.detach().cpu()\n", 1, "copy to CPU", "x.detach().cpu()"),
        ("if (\n    x.sum()\n    > 0\n):\n    pass\n", 2, "item", "if x.sum() > 0"),
        ("i = mask.nonzero()\n", 1, "nonzero", "mask.nonzero()"),
        ("pair = a.item(), b.item()\n", 1, "item", None),
        ("y = x[mask]\n", 1, "nonzero", None),
        ("if y:\n    z = x + 1\n", 2, "item", None),
        ("if (:\n", 1, "item", None),
    ],
)
def test_the_words_of_a_line(tmp_path: Path, source: str, line: int, what: str, words: str | None) -> None:
    file = tmp_path / "model.py"
    file.write_text(source)
    assert said(str(file), line, what) == words


def test_long_words_are_cut(tmp_path: Path) -> None:
    file = tmp_path / "model.py"
    file.write_text(f"if {' + '.join(['value'] * 40)} > 0:\n    pass\n")
    words = said(str(file), 1, "item")
    assert words is not None and len(words) <= 60 and words.endswith("…")


def test_a_file_that_is_gone_says_nothing(tmp_path: Path) -> None:
    assert said(str(tmp_path / "gone.py"), 1, "item") is None
