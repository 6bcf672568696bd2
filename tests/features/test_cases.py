"""Every case in `cases/`: what an editor sees after each step.  UPDATE_CASES=1 writes what is seen into the files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from support import cases
from support.cases import Case
from support.stage import Stage

FOLDER = Path(__file__).parent / "cases"
FILES = sorted(FOLDER.glob("*.txt"))
ALL = {path: cases.read(path) for path in FILES}
NAMED = [pytest.param(path, case, id=f"{path.stem}: {case.name}") for path in FILES for case in ALL[path]]


@pytest.mark.parametrize(("path", "case"), NAMED)
async def test_case(path: Path, case: Case) -> None:
    stage = Stage()
    await stage.play(cases.Step("settings", ""))
    looked = 0
    for step in case.steps:
        seen = await stage.play(step)
        if seen is None:
            continue
        looked += 1
        if os.environ.get("UPDATE_CASES"):
            step.body = seen
        assert seen == step.body, step.head
    assert looked, "a case looks at something"
    if os.environ.get("UPDATE_CASES"):
        path.write_text(cases.written(ALL[path]), encoding="utf-8")


def test_there_are_many() -> None:
    assert sum(map(len, ALL.values())) >= 150
