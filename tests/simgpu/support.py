"""Starts `child.py` and compares what programs give on the simulated device with what they give on the CPU."""

import json
import math
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


def run(programs: str, device: str, timeout: float = 280) -> dict[str, Any]:
    """Results by program name, of the file `programs/PROGRAMS.py`."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.json"
        child = [sys.executable, str(HERE / "child.py"), str(HERE / "programs" / f"{programs}.py"), device, str(out)]
        done = subprocess.run(child, capture_output=True, text=True, timeout=timeout, check=False)
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(out.read_text())
        return found


def names(programs: str) -> list[str]:
    """The programs of a file, without importing it."""
    lines = (HERE / "programs" / f"{programs}.py").read_text().splitlines()
    return [line.split("(")[0].removeprefix("def program_") for line in lines if line.startswith("def program_")]


def close(a: Any, b: Any, tolerance: float) -> bool:
    """Equal, numbers up to a relative `tolerance`."""
    if isinstance(a, float) or isinstance(b, float):
        return math.isclose(a, b, rel_tol=tolerance, abs_tol=tolerance)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(close(x, y, tolerance) for x, y in zip(a, b, strict=True))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(close(a[key], b[key], tolerance) for key in a)
    return bool(a == b)
