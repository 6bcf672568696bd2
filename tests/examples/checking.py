"""Runs `inductoscope check` on an example, and says where in its text a marker stands."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).parents[2] / "examples"


@dataclass(frozen=True)
class At:
    """The one line of an example that contains `text`; of the lines after the one with `after`, the first."""

    text: str
    after: str | None = None

    def line(self, example: str) -> int:
        """1-based; the test is wrong when the marker is not there or ambiguous."""
        lines = (EXAMPLES / example).read_text(encoding="utf-8").splitlines()
        found = [number for number, line in enumerate(lines, start=1) if self.text in line]
        if self.after is not None:
            start = At(self.after).line(example)
            found = [number for number in found if number > start][:1]
        assert len(found) == 1, f"{self} is on {len(found)} lines of {example}"
        return found[0]


def check(example: str, *, device: str, rung: str, status: int = 0) -> dict[str, Any]:
    """The only target's report, as `--json` prints it."""
    options = ["--device", device, "--rung", rung, "--timeout", "250", "--json"]
    command = [sys.executable, "-m", "inductoscope", "check", str(EXAMPLES / example), *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == status, done.stderr
    (target,) = json.loads(done.stdout)["targets"]
    return target
