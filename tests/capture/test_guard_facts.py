"""Guards and dimensions, against the program's own lines and against torch's own account (TORCH_LOGS=guards)."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
PROGRAM = HERE / "lines" / "guards.py"
LINES = {
    match[1]: number
    for number, text in enumerate(PROGRAM.read_text().splitlines(), 1)
    if (match := re.search(r"# <(\w+)>", text))
}
TREE_LINE = re.compile(r"\+- (?P<check>[A-Z][A-Z_]+): ")
FACTS_OF_A_TENSOR = 6

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Told:
    guards: list[dict[str, Any]]
    dimensions: list[dict[str, Any]]
    log: str


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Told:
    folder = tmp_path_factory.mktemp("guards")
    command = [sys.executable, HERE / "support" / "case_run.py", folder, PROGRAM]
    env = {**os.environ, "TORCH_LOGS": "guards"}
    done = subprocess.run(command, check=True, timeout=200, capture_output=True, text=True, env=env)
    watched, alone = (json.loads((folder / name).read_text()) for name in ("guards.json", "guards.bare.json"))
    assert watched["counters"] == alone["counters"]
    return Told(watched["facts"]["guards"], watched["facts"]["dimensions"], done.stderr)


def test_every_guard_that_torch_logs_is_told(told: Told) -> None:
    logged = Counter(list(_logged(told.log)))
    tensors, marks = logged.pop("TENSOR_MATCH"), logged.pop("DIMENSION_DYNAMIC_MARKING_GUARD")
    kinds = Counter(guard["kind"] for guard in told.guards)
    assert marks
    # The log has the guards of two runs, with and without us: they must be the same ones.
    assert 2 * kinds["dynamic-marks"] == 2 * kinds["dtype"] == tensors
    assert 2 * (len(told.guards) - kinds["dynamic-marks"] - FACTS_OF_A_TENSOR * kinds["dtype"]) == logged.total()


def test_guards_stand_on_their_lines_as_the_user_wrote_them(told: Told) -> None:
    first = {
        (guard["source"], guard["kind"]): (guard["expected"], guard["line"])
        for guard in told.guards
        if guard["compile_id"] == "0/0" and not guard["internal"]
    }
    assert first["x", "size"] == ("[12, 8]", LINES["linear"])
    assert first["x", "stride"] == ("[8, 1]", LINES["linear"])
    assert first["self.layers[0].weight", "dtype"] == ("torch.float32", LINES["linear"])
    assert first["self.gain", "value"] == ("3", LINES["linear"])
    assert first["self.options['bias']", "value"] == ("1", LINES["options"])
    assert first["SCALE", "value"] == ("3", LINES["options"])
    assert first["flag", "value"] == ("True", LINES["bounded"])
    assert all(Path(guard["file"]) == PROGRAM for guard in told.guards if guard["file"])


def test_a_bound_of_torch_s_own_has_no_line(told: Told) -> None:
    """torch names the line that uses a size first, and says that the guard does not come from there."""
    own = [guard for guard in told.guards if guard["text"] == "2 <= open_.size()[0]"]
    assert [(guard["compile_id"], guard["line"]) for guard in own] == [("0/1", None)]


def test_what_is_torch_s_own_is_marked(told: Told) -> None:
    for guard in told.guards:
        if guard["kind"] in ("global-state", "dynamic-marks", "dispatch-keys") or "__import_" in guard["source"]:
            assert guard["internal"], guard
    assert not any(guard["internal"] for guard in told.guards if guard["kind"] in ("value", "shape"))


def test_dimensions_say_what_became_of_them(told: Told) -> None:
    first, second = ({(d["source"], d["dim"]): d for d in told.dimensions if d["compile_id"] == i} for i in IDS)
    assert {key: (d["state"], d["size"]) for key, d in first.items()} == {
        ("x", 0): ("static", 12),
        ("x", 1): ("static", 8),
        ("index", 0): ("static", 7),
        ("index", 1): ("static", 2),
        ("open_", 0): ("static", 3),
    }
    batch, pinned = second["x", 0], second["index", 0]
    assert (batch["state"], batch["size"], batch["maximum"], batch["multiple_of"]) == ("dynamic", 24, 99, 4)
    assert [(limit["text"], limit["line"]) for limit in batch["limits"]] == [
        ("(x.size()[0] % 4) == 0", LINES["multiple"]),
        ("2 <= x.size()[0] <= 99", LINES["bounded"]),
    ]
    assert (pinned["state"], pinned["size"]) == ("pinned", 6)
    assert [(limit["text"], limit["line"]) for limit in pinned["limits"]] == [("index.size()[0] == 6", LINES["pinned"])]
    assert second["x", 1]["state"] == "static"


IDS = ("0/0", "0/1")


def _logged(log: str) -> Iterator[str]:
    """The checks in torch's tree, one for each condition; a lone name repeats a relation that was written before."""
    for line in log.splitlines():
        if match := TREE_LINE.search(line):
            yield match["check"]
