"""Decisions are recorded by torch's own hooks and decide a simulation of that card, in other processes."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]
HERE = Path(__file__).parent
MODEL = HERE / "recorded_model.py"
EAGER = """
import torch

BACKEND = "eager"

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(8, 8)

    def forward(self, x):
        return self.linear(x).relu()

def get_inputs():
    return [torch.randn(4, 8)]
"""


def child(script: str, *arguments: str) -> None:
    done = subprocess.run(
        [sys.executable, str(HERE / script), *arguments], capture_output=True, text=True, timeout=280, check=False
    )
    assert done.returncode == 0, done.stderr


def check(file: Path, model: Path = MODEL) -> dict[str, Any]:
    command = [sys.executable, "-m", "inductoscope", "check", str(model), "--json", "--no-probe"]
    command += ["--device", f"sim:{file}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr
    (target,) = json.loads(done.stdout)["targets"]
    assert isinstance(target, dict)
    return target


@pytest.fixture(scope="module")
def card(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The device file of a card on which the plain matmul, a template and the last configuration were fastest."""
    pytest.importorskip("triton")
    file = tmp_path_factory.mktemp("card") / "box.json"
    child("fake_card.py", str(MODEL), str(file))
    return file


def test_a_simulation_decides_as_was_recorded(card: Path) -> None:
    target = check(card)
    assert target["device"] == "sim:box"
    (padding,) = [note for note in target["notes"] if "4096x4097x4099" in note]
    assert "plain form is shown, as recorded on a NVIDIA H200" in padding
    template, other = target["kernels"]
    recorded = json.loads(card.read_text())["recording"]
    assert template["library"] == "Triton template"
    first = template["choices"][0]
    assert (first["name"], first["chosen"]) == (recorded["choices"][0]["winner"], True)
    assert len(template["choices"]) == len(recorded["choices"][0]["ways"])
    winner = next(one["winner"] for one in recorded["kernels"] if len(one["timed"]) == other["launch"]["configs"])
    assert other["launch"]["num_warps"] == winner["num_warps"]
    (likely,) = [config for config in other["configs"] if config["likely"]]
    assert (likely["blocks"], likely["us"]) == (winner["blocks"], winner["us"])
    assert other["resources"]["registers"] == likely["registers"]
    assert "as recorded on a NVIDIA H200" in other["note"]


def test_decisions_of_another_torch_are_not_used_and_a_note_says_so(card: Path, tmp_path: Path) -> None:
    table = json.loads(card.read_text())
    table["recording"]["torch"] = "2.9.0"
    (tmp_path / "old.json").write_text(json.dumps(table))
    target = check(tmp_path / "old.json")
    assert any("decided by torch 2.9 and is not used" in note for note in target["notes"])
    assert any("Estimated of that timing" in note for note in target["notes"])
    assert all(choice["us"] is None for kernel in target["kernels"] for choice in kernel["choices"])


@pytest.mark.skipif(not version("torch").startswith("2.11."), reason="the card was used with torch 2.11")
def test_the_winners_on_a_real_card_are_found_again() -> None:
    example = HERE.parents[1] / "examples" / "gpt_block.py"
    target = check(HERE.parent / "data" / "device-h200.json", example)
    decided = [kernel for kernel in target["kernels"] if "as recorded on a NVIDIA H200" in (kernel["note"] or "")]
    forward = {k["name"] for k in target["kernels"] if k["phase"] == "forward" and len(k["configs"]) > 1}
    assert {kernel["name"] for kernel in decided} >= forward
    for kernel in decided:
        (likely,) = [config for config in kernel["configs"] if config["likely"]]
        assert likely["us"] == min(config["us"] for config in kernel["configs"] if config["us"] is not None)


def test_the_errands_of_recording_bring_the_card_or_a_sentence(tmp_path: Path) -> None:
    pytest.importorskip("triton")
    (tmp_path / "model.py").write_text(EAGER)
    child("errands.py", str(tmp_path / "model.py"), str(tmp_path / "out.json"))
    told = json.loads((tmp_path / "out.json").read_text())
    for errand in ("figures", "decisions"):
        failed = told[f"{errand}, no card"]
        assert failed["type"] == "RunFailed"
        assert "nothing to record" in failed["body"]["failure"]["message"]
    device = told["figures, a card"]["body"]["card"]["device"]
    assert (device["name"], device["arch"], device["multiprocessors"]) == ("NVIDIA A100-SXM4-80GB", "sm_80", 108)
    assert abs(device["bandwidth_gbps"] - 2039) < 1
    assert told["decisions, a card"]["body"]["decisions"]["card"] == "NVIDIA A100-SXM4-80GB"
