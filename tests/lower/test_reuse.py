"""Graphs whose facts come from an earlier run: the report is that of a run that lowers everything."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

TESTS = Path(__file__).parents[1]
TEXT = (TESTS / "lower" / "models" / "reused.py").read_text()
SCRIPT = TESTS / "lower" / "support" / "reuse_runs.py"

FREE = ("phases", "run_ms", "lowerings")
"""What a report says of the run itself."""


def replaced(old: str, new: str) -> str:
    assert TEXT.count(old) >= 1, old
    return TEXT.replace(old, new)


FUSED = "hidden = self.norm(hidden) + x\n        hidden = hidden * 2.0"
EDITS = {
    "nothing": TEXT,
    "blank lines above": replaced("WIDTH = 16", "# a comment\n\n\nWIDTH = 16"),
    "a line between": replaced("        hidden = hidden * 2.0", "\n        # twice\n        hidden = hidden * 2.0"),
    "lines joined": replaced(FUSED, "hidden = (self.norm(hidden) + x) * 2.0"),
    "one operator": replaced("torch.relu", "torch.tanh"),
    "a constant": replaced("* 2.0", "* 3.0"),
    "a name": replaced("hidden", "inner"),
    "a setting": replaced("WIDTH = 16", "torch._inductor.config.split_reductions = False\nWIDTH = 16"),
    "no gradients": replaced("torch._dynamo.graph_break()\n        return", "pass\n        return").replace(
        "    def forward", "    @torch.no_grad()\n    def forward"
    ),
}
DEVICES = {"one operator": ("cpu", "sim:H200"), "a name": ("cpu",), "a setting": ("cpu",), "no gradients": ("cpu",)}


ALL = [(edit, device) for edit in EDITS for device in DEVICES.get(edit, ("sim:H200",))]

Reports = Callable[[str, str, str], dict[str, Any]]


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Reports:
    """The report of an edit on a device, `fresh` or `warm`: with a store that a run of the unedited text has filled."""
    folder = tmp_path_factory.mktemp("reuse")
    files = {edit: _file(folder / _word(edit), text) for edit, text in EDITS.items()}
    filled = {device: folder / f"filled-{_word(device)}" for device in ("cpu", "sim:H200")}
    _run(folder / "fills", {device: [files["nothing"], device, store] for device, store in filled.items()})
    jobs: dict[str, list[Any]] = {}
    for edit, device in ALL:
        store = shutil.copytree(filled[device], folder / f"{_word(edit)}-{_word(device)}")
        jobs[f"fresh {edit} {device}"] = [files[edit], device, None]
        jobs[f"warm {edit} {device}"] = [files[edit], device, store]
    _run(folder / "runs", jobs)

    def report(kind: str, edit: str, device: str) -> dict[str, Any]:
        answer = folder / "runs" / f"{kind} {edit} {device}" / "answer.json"
        assert answer.exists(), answer.with_name("log.txt").read_text()
        return dict(json.loads(answer.read_text()))

    return report


def _word(text: str) -> str:
    return text.replace(" ", "-").replace(":", "-")


def _file(folder: Path, text: str) -> Path:
    folder.mkdir()
    file = folder / "model.py"
    file.write_text(text)
    return file


def _run(folder: Path, jobs: dict[str, list[Any]]) -> None:
    folder.mkdir()
    listed = folder.with_suffix(".json")
    listed.write_text(json.dumps(jobs, default=str))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])}
    subprocess.run([sys.executable, SCRIPT, folder, listed], env=environment, check=True, timeout=1500)


@pytest.mark.parametrize(("edit", "device"), ALL)
def test_the_report_is_that_of_a_run_that_lowers_everything(edit: str, device: str, reports: Reports) -> None:
    fresh, warm = reports("fresh", edit, device), reports("warm", edit, device)
    for field in FREE:
        del fresh[field], warm[field]
    assert {name for name in fresh if fresh[name] != warm[name]} == set()
    assert fresh["kernels"] and any(kernel["phase"] == "backward" for kernel in fresh["kernels"]) != (
        edit == "no gradients"
    )


@pytest.mark.parametrize(
    ("edit", "unchanged"),
    [
        ("nothing", "all"),
        ("blank lines above", "all"),
        ("a line between", "all"),
        ("lines joined", "but one"),
        ("one operator", "but one"),
        ("a constant", "but one"),
        ("a setting", "none"),
        ("no gradients", "none"),
    ],
)
def test_only_graphs_that_changed_are_lowered(edit: str, unchanged: str, reports: Reports) -> None:
    report = reports("warm", edit, DEVICES.get(edit, ("sim:H200",))[-1])
    functions = {graph["id"]: graph["line"] for graph in report["graphs"]}
    lowered = {functions[one["graph"]] for one in report["lowerings"] if one["outcome"] == "lowered"}
    assert len(report["lowerings"]) >= 4 or edit == "no gradients"
    expected = {"all": 0, "but one": 1, "none": len(set(functions.values()))}[unchanged]
    assert len(lowered) == expected


def test_every_run_without_a_store_lowers_and_says_nothing_of_it(reports: Reports) -> None:
    assert reports("fresh", "a name", "cpu")["lowerings"] == []


def test_the_time_of_an_unchanged_graph_is_a_phase_of_its_own(reports: Reports) -> None:
    report = reports("warm", "nothing", "sim:H200")
    names = {phase["name"] for phase in report["phases"] if phase["graph"] is not None}
    assert "unchanged graph" in names
    assert not names & {"inductor", "inductor backward", "lowering", "code generation"}
