"""Assembling as a run does it: kernels that crash, hang or cannot be kept cost only themselves."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

CHILD = Path(__file__).parent / "assembling_child.py"


@cache
def found(how: str) -> dict[str, Any]:
    """What `assembling_child.py` tells."""
    pytest.importorskip("triton")
    done = subprocess.run([sys.executable, str(CHILD), how], capture_output=True, text=True, timeout=380, check=False)
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


def test_hostile_kernels_cost_only_themselves() -> None:
    told = found("hostile")
    kernels = told["kernels"]
    assert kernels["good"]["registers"] >= 8
    assert kernels["also_good"]["registers"] >= 8
    notes = {name: kernel["note"] for name, kernel in kernels.items()}
    assert "SIGSEGV" in notes["crashes"]
    assert "with status 7" in notes["exits"]
    assert "took longer than" in notes["hangs"]
    assert "cannot be loaded" in notes["raises"]
    assert "Triton cannot compile this kernel" in notes["nonsense"]
    assert notes["good"] is None
    assert "5 of 7 kernels could not be assembled" in " ".join(told["notes"])


def test_order_and_what_is_told_meanwhile() -> None:
    told = found("order")
    assert told["order"] == ["looked_at", "forward_1", "forward_2", "backward_1"]
    partial = told["told"]
    assert partial[0] == ["looked_at"]
    assert partial[1] == ["looked_at", "forward_1", "forward_2"]


def test_the_second_run_compiles_nothing_not_even_a_renumbered_kernel() -> None:
    told = found("again")
    assert told["compiled"] == [2, 0, 0]
    first, second, renumbered = told["facts"]
    assert first == second
    assert renumbered == first  # hashes too
    assert told["names"] == [True, True]


def test_a_store_that_cannot_be_written_costs_the_texts_only() -> None:
    told = found("unwritable")
    assert told["registers"] >= 8
    assert told["stored"] is None
    assert "could not be kept" in " ".join(told["notes"])


def test_a_damaged_entry_is_made_again() -> None:
    told = found("damaged")
    assert told["compiled"] == [1, 1, 0]
    assert told["same"]
