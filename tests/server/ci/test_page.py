"""What `docs/ci.md` shows can be run."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import yaml

from inductoscope.server import cli, gate

PAGE = (Path(__file__).parents[3] / "docs" / "ci.md").read_text(encoding="utf-8")
SNIPPETS = [yaml.safe_load(text) for text in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)]
IN_WORKFLOW = [
    step["run"] for step in SNIPPETS[0]["jobs"]["check"]["steps"] if "inductoscope check" in step.get("run", "")
]
IN_TEXT = re.findall(r"^    (inductoscope check .*)$", PAGE, re.MULTILINE)


@pytest.mark.parametrize("command", [*IN_TEXT, *IN_WORKFLOW])
def test_each_command_is_one(command: str) -> None:
    arguments = cli._parser().parse_args(shlex.split(command)[1:])
    gate.parse(arguments.fail_on)


def test_the_workflow_uploads_what_the_check_writes() -> None:
    steps = SNIPPETS[0]["jobs"]["check"]["steps"]
    arguments = cli._parser().parse_args(shlex.split(IN_WORKFLOW[0])[1:])
    (upload,) = [step for step in steps if "upload-sarif" in step.get("uses", "")]
    assert upload["with"]["sarif_file"] == arguments.sarif and upload["if"] == "always()"


def test_the_hook_is_one_of_ours() -> None:
    (hook,) = SNIPPETS[1]["repos"][0]["hooks"]
    arguments = cli._parser().parse_args(["check", *hook["args"], "model.py"])
    assert str(arguments.baseline) == "inductoscope-baseline.json"
    gate.parse(arguments.fail_on)
