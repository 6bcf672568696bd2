"""Small programs whose lines say what has to be reported there, and nothing else may be.

A comment `# expect: CODE [GBnnnn] [split|rest|whole] [xCOUNT]` stands on the line of each finding, `;` between several.
What it says was worked out from torch's own log (TORCH_LOGS=graph_breaks,recompiles), not from our output.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
PROGRAMS = sorted(path for path in (HERE / "programs").glob("*.py") if not path.stem.endswith("_lib"))
OUTCOMES = {"split": "split", "rest": "rest-of-function-eager", "whole": "whole-function-eager"}
EXPECT = re.compile(r"  # expect: (.*)$")

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the result of every program, from one process that forks for each."""
    folder = tmp_path_factory.mktemp("programs")
    command = [sys.executable, HERE / "support" / "case_run.py", folder, *PROGRAMS]
    with (folder / "log").open("w") as log:
        subprocess.run(command, check=True, timeout=800, stdout=log, stderr=log)
    return folder


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_findings_stand_where_the_program_says(program: Path, results: Path) -> None:
    report = read(results, program.stem)
    found = Counter(tell(finding) for finding in report["facts"]["findings"])
    assert found == expected(program)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_every_record_of_torch_is_accounted_for(program: Path, results: Path) -> None:
    report = read(results, program.stem)
    breaks = [one for one in report["facts"]["breaks"] if not one["fullgraph"]]
    refused = any(one["code"] == "GB0219" for one in breaks)  # by the backend: torch tells of it there and in Dynamo
    told = report["told"]["dynamo_graph_break_reason"]
    assert sum(one["count"] for one in breaks) == (told / 2 if refused else told)
    assert len(report["facts"]["recompiles"]) == report["told"]["recompile_reasons"]
    compiled = sum(one["ops"] for one in report["facts"]["graphs"])
    captured = report["counters"]["stats"].get("calls_captured", 0)
    assert compiled < captured if refused else compiled == captured


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_watching_changes_nothing(program: Path, results: Path) -> None:
    watched, alone = read(results, program.stem), read(results, f"{program.stem}.bare")
    assert watched["raised"] == alone["raised"]
    assert watched["counters"]["frames"] == alone["counters"]["frames"]
    assert watched["counters"]["stats"] == alone["counters"]["stats"]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_what_is_streamed_is_in_the_report(program: Path, results: Path) -> None:
    report = read(results, program.stem)
    final = {(one["code"], one["file"], one["line"], one["id"]) for one in report["facts"]["findings"]}
    streamed = [(one["code"], one["file"], one["line"], one["id"]) for one in report["streamed"]]
    assert set(streamed) <= final


@pytest.mark.parametrize(
    ("program", "texts"),
    [
        ("unicode_columns", {'höhe["ключ→😀"].sum().item()'}),
        ("several_on_one_line", {"y.sum().item()", "y.max().item()", "print(y.sum().item(), y.max().item())"}),
        ("expression_over_lines", {"float(\n            x.abs()\n            .max()\n        )"}),
        ("generators", {"part.sum() > 0"}),
    ],
)
def test_columns_mark_the_expression(program: str, texts: set[str], results: Path) -> None:
    report = read(results, program)
    assert {marked(one) for one in report["facts"]["findings"]} == texts


def test_guards_tell_what_they_expected_and_met(results: Path) -> None:
    report = read(results, "closure_and_default")
    guards = [one["guards"][0] for one in report["facts"]["recompiles"]]
    assert [(one["source"], one["expected"], one["actual"]) for one in guards[:4]] == [
        ("G['LEVEL']", "1", "5"),
        ("G['settings'].gain", "2", "7"),
        ("G['table']['bias']", "3", "9"),
        ("G['helper'].__defaults__[0]", "2", "3"),
    ]


def test_a_recompilation_of_a_librarys_function_names_it(results: Path) -> None:
    findings = read(results, "library_recompiles")["facts"]["findings"]
    messages = [one["message"] for one in findings if one["code"] == "recompile"]
    assert messages == ["Recompiled `scaled`: the guard `by == 2.0` failed (now 3)."]


def test_a_break_that_a_library_wants_is_not_told_as_the_users(results: Path) -> None:
    (found,) = read(results, "optimizer_inside")["facts"]["findings"]
    assert "It is in `_use_grad` (optimizer.py:" in found["message"]
    assert "User-inserted" not in found["message"]
    assert found["hints"] == []


def read(folder: Path, stem: str) -> Any:
    return json.loads((folder / f"{stem}.json").read_text())


def tell(finding: dict[str, Any]) -> tuple[str, int, str]:
    """A finding as the comments have it."""
    short = {long: short for short, long in OUTCOMES.items()}.get(finding["outcome"])
    count = f"x{finding['count']}" if finding["count"] != 1 else None
    identifier = finding["id"] if finding["code"] == "graph-break" else None
    words = (finding["code"], identifier, short, count)
    return Path(finding["file"]).name, finding["line"], " ".join(word for word in words if word)


def expected(program: Path) -> Counter[tuple[str, int, str]]:
    found: Counter[tuple[str, int, str]] = Counter()
    for path in (program, program.with_name(f"{program.stem}_lib.py")):
        for number, line in enumerate(path.read_text().splitlines() if path.exists() else [], 1):
            if match := EXPECT.search(line):
                found.update((path.name, number, part.strip()) for part in match[1].split(";"))
    return found


def marked(finding: dict[str, Any]) -> str:
    lines = Path(finding["file"]).read_text().splitlines()[finding["line"] - 1 : finding["end_line"]]
    lines = [EXPECT.sub("", line) for line in lines]
    lines[-1] = lines[-1][: finding["end_column"]]
    lines[0] = lines[0][finding["column"] :]
    return "\n".join(lines)
