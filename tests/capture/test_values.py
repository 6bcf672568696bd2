"""What lines make, against what the program's own comments say (worked out from the shapes alone)."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
PROGRAM = HERE / "lines" / "values.py"
MAKES = re.compile(r"# makes: (.*)$")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def values(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    folder = tmp_path_factory.mktemp("values")
    command = [sys.executable, HERE / "support" / "case_run.py", folder, PROGRAM]
    subprocess.run(command, check=True, timeout=200, capture_output=True)
    watched, alone = (json.loads((folder / name).read_text()) for name in ("values.json", "values.bare.json"))
    assert watched["counters"] == alone["counters"]
    found: list[dict[str, Any]] = watched["facts"]["values"]
    return found


def test_every_line_makes_what_its_comment_says(values: list[dict[str, Any]]) -> None:
    found: dict[int, list[str]] = defaultdict(list)
    for fact in values:
        assert Path(fact["file"]) == PROGRAM
        name = f"{fact['name']}=" if fact["name"] else ""
        stride = f" [{', '.join(fact['stride'])}]" if fact["stride"] else ""
        found[fact["line"]].append(f"{name}{fact['text']}{stride}")
    lines = enumerate(PROGRAM.read_text().splitlines()[2:], 3)
    assert found == {number: match[1].split(" | ") for number, text in lines if (match := MAKES.search(text))}


def test_a_value_names_its_operator_graph_and_device(values: list[dict[str, Any]]) -> None:
    linear = [fact for fact in values if fact["name"] == "h"]
    assert [(fact["op"], fact["graph"], fact["device"]) for fact in linear] == [
        ("linear", "0/0", "cpu"),
        ("linear", "0/1", "cpu"),
    ]
    assert {fact["op"] for fact in values if fact["name"] == "z" and "16" not in fact["text"]} >= {None, "cat"}
