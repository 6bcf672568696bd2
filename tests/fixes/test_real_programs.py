"""Each fix on a real program: run again, what it answers is gone, and uncompiled the program computes the same.

All programs are run by one process before the fixes and by one after them; each is forked off for itself.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from fixes.programs import CASES, Case
from inductoscope.protocol import codec
from inductoscope.protocol.report import Finding, TargetReport
from inductoscope.server.features import fixes
from support.fixing import apply
from support.session import Harness

CHILD = Path(__file__).with_name("runs_child.py")

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    return run(tmp_path_factory.mktemp("before"), {case.name: case.text for case in CASES})


@pytest.fixture(scope="module")
def fixed(before: dict[str, dict[str, Any]]) -> dict[str, str]:
    """The text of each program after its fix."""
    return {case.name: asyncio.run(after_fix(case, before[case.name])) for case in CASES}


@pytest.fixture(scope="module")
def after(fixed: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    return run(tmp_path_factory.mktemp("after"), fixed)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_what_was_found_is_gone(case: Case, before: dict[str, Any], after: dict[str, Any]) -> None:
    assert told(case, before[case.name]) > case.left, "the program does not show what the fix is for"
    assert after[case.name]["failed"] is None
    assert told(case, after[case.name]) <= case.left, after[case.name]["report"]["findings"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_uncompiled_the_program_computes_the_same(case: Case, before: dict[str, Any], after: dict[str, Any]) -> None:
    assert flat(after[case.name]["results"]) == pytest.approx(flat(before[case.name]["results"]), rel=1e-5)


def run(folder: Path, texts: dict[str, str]) -> dict[str, dict[str, Any]]:
    """What the pipeline and Python make of each text."""
    for name, text in texts.items():
        (folder / f"{name}.py").write_text(text)
    with (folder / "log").open("w") as log:
        files = [str(folder / f"{name}.py") for name in texts]
        subprocess.run([sys.executable, CHILD, *files], check=True, timeout=800, stdout=log, stderr=log)
    missing = [name for name in texts if not (folder / f"{name}.py.json").is_file()]
    assert not missing, f"{missing}: {(folder / 'log').read_text()[-4000:]}"
    return {name: json.loads((folder / f"{name}.py.json").read_text()) for name in texts}


async def after_fix(case: Case, result: dict[str, Any]) -> str:
    """The text with the case's fix applied, as a session that got the report offers it."""
    report = codec.from_json(TargetReport, result["report"])
    h = Harness()
    h.open(case.text, report.file)
    run = await h.runner.next()
    run.finish(*report.findings, values=report.values, inputs=report.inputs)
    snapshot = await h.settled(report.file)
    offered = fixes.fixes(snapshot, report.file, 1, case.text.count("\n") + 1)
    meant = [fix for fix in offered if case.fix in fix.title and fix.disabled is None]
    assert meant, (case.name, [(fix.title, fix.disabled) for fix in offered])
    return apply(case.text, meant[0].edits)


def told(case: Case, result: dict[str, Any]) -> int:
    """How often the finding is told that the fix is for."""
    found: Sequence[Finding] = codec.from_json(TargetReport, result["report"]).findings
    code, which = case.gone
    return sum(item.count for item in found if item.code == code and which in (item.id, item.guard_family, None))


def flat(value: Any) -> list[float]:
    if isinstance(value, list):
        return [number for item in value for number in flat(item)]
    return [float(value)]
