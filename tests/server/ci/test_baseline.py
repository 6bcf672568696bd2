"""Which findings are new, whatever else was edited."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from inductoscope.protocol.report import Finding, Report, Rung, Severity
from inductoscope.server.ci import baseline, sarif
from inductoscope.server.ci.baseline import BaselineError
from inductoscope.server.ci.fingerprints import Fingerprints, distinct

FOLDER = Path("/w")
BEFORE = """\
def forward(x, mask):
    y = helper(x)
    print(y)
    if y.sum() > 0:
        y = y * mask
    return y
"""
BREAKS = ("print(y)", "if y.sum() > 0:")


def finding(text: str, line_of: str, file: str = "/w/model.py", nth: int = 1, **changes: str) -> Finding:
    """A graph break on the nth line that says `line_of`."""
    lines = [number for number, line in enumerate(text.splitlines(), 1) if line.strip() == line_of]
    line = lines[nth - 1]
    fields = {"id": "GB1", "guard_family": None, **changes}
    return Finding("graph-break", Severity.WARNING, file, line, 4, line, 9, f"line {line}", Rung.CAPTURE, **fields)


def marks(**files: str) -> Fingerprints:
    return Fingerprints({f"/w/{name}.py": text for name, text in files.items()}.get, FOLDER)


def new_in(after: str, *findings: Finding, file: str = "model") -> list[str]:
    """What is new after an edit, by its line's text, with the two breaks of `BEFORE` in the baseline."""
    known = [marks(model=BEFORE).of(finding(BEFORE, text)) for text in BREAKS]
    compared = baseline.compare(known, findings, marks(**{file: after}), [f"{file}.py"])
    lines = after.splitlines()
    return [lines[one.line - 1].strip() for number, one in enumerate(findings) if number not in compared.known]


@pytest.mark.parametrize(
    "after",
    [
        pytest.param(BEFORE, id="nothing"),
        pytest.param("import math\n\n\n# more\n" + BEFORE, id="lines above"),
        pytest.param(BEFORE.replace("y = helper(x)", "y = other_helper(x) + 1"), id="another line of the function"),
        pytest.param(BEFORE.replace("helper", "renamed"), id="a name elsewhere"),
        pytest.param(BEFORE.replace("def forward", "def run"), id="the function is renamed"),
        pytest.param("class A:\n" + BEFORE.replace("\n", "\n    ").join(["    ", ""]), id="it became a method"),
    ],
)
def test_what_was_there_is_known(after: str) -> None:
    assert new_in(after, *(finding(after, text) for text in BREAKS)) == []


def test_renamed_variables_of_the_statement_itself() -> None:
    after = BEFORE.replace("y", "hidden")
    assert new_in(after, finding(after, "print(hidden)"), finding(after, "if hidden.sum() > 0:")) == []


def test_a_renamed_file() -> None:
    found = [finding(BEFORE, text, file="/w/moved.py") for text in BREAKS]
    assert new_in(BEFORE, *found, file="moved") == []


def test_the_layout_of_the_statement() -> None:
    after = BEFORE.replace("if y.sum() > 0:", "if (\n        y.sum()   # positive?\n        > 0\n    ):")
    assert new_in(after, finding(after, "print(y)"), finding(after, "if (")) == []


@pytest.mark.parametrize(
    ("after", "line"),
    [
        pytest.param(BEFORE.replace("return y", "y.tolist()\n    return y"), "y.tolist()", id="another statement"),
        pytest.param(BEFORE.replace("helper(x)", "x.item()"), "y = x.item()", id="an edited line"),
        pytest.param(BEFORE + "def g(x):\n    return x.item()\n", "return x.item()", id="another function"),
    ],
)
def test_a_break_that_was_not_there_is_new(after: str, line: str) -> None:
    assert new_in(after, *(finding(after, text) for text in BREAKS), finding(after, line)) == [line]


def test_one_more_of_the_same_is_new() -> None:
    after = BEFORE.replace("    return y", "    print(y)\n    return y")
    found = [finding(after, "print(y)"), finding(after, "print(y)", nth=2), finding(after, BREAKS[1])]
    assert new_in(after, *found) == ["print(y)"]


@pytest.mark.parametrize("changes", [{"id": "GB2"}, {"guard_family": "size"}])
def test_another_reason_on_the_same_line_is_new(changes: dict[str, str]) -> None:
    assert new_in(BEFORE, finding(BEFORE, "print(y)", **changes)) == ["print(y)"]


def test_entries_of_checked_files_that_fit_nothing_are_gone() -> None:
    entries = [marks(model=BEFORE).of(finding(BEFORE, text)) for text in BREAKS]
    compared = baseline.compare(entries, [finding(BEFORE, BREAKS[0])], marks(model=BEFORE), ["model.py"])
    assert [entry.text for entry in compared.gone] == [BREAKS[1]]
    assert baseline.compare(entries, [], marks(), ["other.py"]).gone == ()


def test_targets_that_share_a_line_tell_of_it_once() -> None:
    one, two = finding(BEFORE, BREAKS[0]), finding(BEFORE, BREAKS[1])
    told = [("a", [one, one]), ("b", [one, two]), ("c", [one, one, one])]
    assert distinct(told) == [("a", one), ("a", one), ("b", two), ("c", one)]


def test_names_are_stable_and_no_two_are_the_same() -> None:
    twice = BEFORE.replace("    return y", "    print(y)\n    return y")
    found = [finding(twice, "print(y)"), finding(twice, "print(y)", nth=2)]
    first = marks(model=twice).names(found)
    moved = "\n\n" + twice
    assert marks(model=moved).names([finding(moved, "print(y)"), finding(moved, "print(y)", nth=2)]) == first
    assert len(set(first)) == 2


def test_a_written_baseline_is_read_back_and_keeps_what_was_not_looked_at(tmp_path: Path) -> None:
    path = tmp_path / "baseline.json"
    text = {str(tmp_path / "model.py"): BEFORE}
    made = Fingerprints(text.get, tmp_path)
    here = [finding(BEFORE, one, file=str(tmp_path / "model.py")) for one in BREAKS]
    assert baseline.write(path, here, made, ["model.py"]) == 2
    entries = baseline.read(path)
    assert entries == tuple(sorted(map(made.of, here)))
    (tmp_path / "model.py").write_text(BEFORE)
    assert baseline.write(path, [], made, ["other.py"]) == 2
    (tmp_path / "model.py").unlink()
    assert baseline.write(path, [], made, ["other.py"]) == 0


def test_a_name_that_is_no_unicode_is_read_back(tmp_path: Path) -> None:
    path, file = tmp_path / "baseline.json", os.fsdecode(os.fsencode(tmp_path) + b"/m\xff.py")
    made = Fingerprints({file: BEFORE}.get, tmp_path)
    baseline.write(path, [finding(BEFORE, BREAKS[0], file=file)], made, [])
    assert [os.fsencode(one.file) for one in baseline.read(path)] == [b"m\xff.py"]


def test_a_name_that_is_no_unicode_stands_in_a_log(tmp_path: Path) -> None:
    file = os.fsdecode(os.fsencode(tmp_path) + b"/m \xff.py")
    found = sarif.Found(finding(BEFORE, BREAKS[0], file=file), "Model.forward", "cpu")
    made = Fingerprints({file: BEFORE}.get, tmp_path)
    log = sarif.log(Report("1", None, None, None, ()), [found], [f"{file} is odd."], made, tmp_path)
    read = json.loads(baseline.as_json(log).decode())["runs"][0]
    (location,) = read["results"][0]["locations"]
    assert location["physicalLocation"]["artifactLocation"] == {"uri": "m%20%FF.py", "uriBaseId": "SRCROOT"}


def test_a_mark_at_the_start_of_the_file_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "baseline.json"
    path.write_text('{"inductoscope-baseline": 1, "findings": []}', encoding="utf-8-sig")
    assert baseline.read(path) == ()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{", "not valid JSON"),
        ("[]", "no baseline"),
        ('{"findings": []}', "another version"),
        ('{"inductoscope-baseline": 1, "findings": [7]}', "Finding 1"),
        ('{"inductoscope-baseline": 1, "findings": [{"code": 7}]}', "Finding 1"),
        ("[" * 100_000, "not valid JSON"),
    ],
)
def test_what_is_no_baseline_is_a_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    path = tmp_path / "baseline.json"
    path.write_text(text)
    with pytest.raises(BaselineError, match=sentence):
        baseline.read(path)
    with pytest.raises(BaselineError, match=f"{sentence}.*remove it first"):
        baseline.write(path, [], marks(), [])
    assert path.read_text() == text


def test_what_is_not_there_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(BaselineError, match="--write-baseline"):
        baseline.read(tmp_path / "none.json")


def test_entries_say_nothing_that_is_empty(tmp_path: Path) -> None:
    path = tmp_path / "baseline.json"
    baseline.write(path, [finding(BEFORE, BREAKS[0])], marks(model=BEFORE), ["model.py"])
    (entry,) = json.loads(path.read_text())["findings"]
    assert set(entry) == {"file", "code", "id", "scope", "text"}
