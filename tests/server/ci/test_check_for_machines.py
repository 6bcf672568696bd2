"""`check` as continuous integration calls it: SARIF, baselines and exit statuses, with a scripted worker."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from inductoscope.protocol import codec
from inductoscope.protocol.codes import CODES
from inductoscope.protocol.report import Finding, Related, Rung, Severity
from inductoscope.server import pages
from inductoscope.server.cli import main
from support.fake_worker import Script

ROOT = Path(__file__).parents[3]
SCHEMA = json.loads((ROOT / "tests" / "data" / "sarif-2.1.0-subset.schema.json").read_text())
MODEL = "import torch\nENTRY = 'f'\ndef get_inputs(): ...\ndef f(x):\n    print(x)\n    return x\n"
EMPTY = "x = 1\n"
WITHOUT_INPUTS = "import torch\n@torch.compile\ndef f(x):\n    return x\n"

Check = Callable[..., int]


@pytest.fixture
def check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Check:
    """`inductoscope check model.py OPTIONS` with a worker that finds a break at each `print`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    monkeypatch.setenv("NO_COLOR", "1")
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "model.py").write_text(MODEL)
    (tmp_path / ".fake").mkdir()

    def run(*options: str, paths: tuple[str, ...] = ("model.py",)) -> int:
        lines = (tmp_path / "model.py").read_text().splitlines()
        breaks = [number for number, line in enumerate(lines, 1) if "print" in line]
        script = Script().hello().take_run().done(findings=[break_at(number) for number in breaks])
        return main(["check", *paths, *options, "--python", script.interpreter(tmp_path / ".fake")])

    return run


def break_at(line: int) -> Any:
    file = str(Path.cwd() / "model.py")
    related = (Related(file, 4, "called from here"), Related("/elsewhere/lib.py", 7, "in here"))
    hints = ("Do not print.",)
    where = (file, line, 4, line, 12, "It breaks.", Rung.CAPTURE)
    found = Finding("graph-break", Severity.WARNING, *where, "GB1", "https://example.org/1", 1, related, hints=hints)
    return codec.to_json(found)


def log(text: str) -> Any:
    """A SARIF log, which fits the schema."""
    value = json.loads(text)
    jsonschema.Draft202012Validator(SCHEMA).validate(value)
    return value


def edit(old: str, new: str) -> None:
    model = Path("model.py")
    assert old in model.read_text()
    model.write_text(model.read_text().replace(old, new))


def test_a_sarif_file_beside_the_text(check: Check, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check("--sarif", "out.sarif", "--fail-on", "break") == 1
    assert "It breaks." in capsys.readouterr().out
    (run,) = log(Path("out.sarif").read_text())["runs"]
    (result,) = run["results"]
    assert (result["ruleId"], result["level"]) == ("graph-break", "warning")
    assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == "graph-break"
    assert result["message"]["text"] == "It breaks. (GB1)\nHint: Do not print.\nSee https://example.org/1"
    (place,) = result["locations"]
    region = {"startLine": 5, "startColumn": 5, "endLine": 5, "endColumn": 13}
    assert place["physicalLocation"] == {
        "artifactLocation": {"uri": "model.py", "uriBaseId": "SRCROOT"},
        "region": region,
    }
    assert run["originalUriBaseIds"]["SRCROOT"]["uri"] == tmp_path.as_uri() + "/"
    assert [one["physicalLocation"]["artifactLocation"]["uri"] for one in result["relatedLocations"]] == [
        "model.py",
        "file:///elsewhere/lib.py",
    ]
    assert "baselineState" not in result
    assert result["properties"]["target"] == "f"


def test_sarif_on_standard_output_is_alone_there(check: Check, capsys: pytest.CaptureFixture[str]) -> None:
    assert check("--sarif", "-") == 0
    assert len(log(capsys.readouterr().out)["runs"][0]["results"]) == 1


def test_each_code_is_a_rule_with_its_page(check: Check) -> None:
    check("--sarif", "out.sarif")
    rules = {rule["id"]: rule for rule in log(Path("out.sarif").read_text())["runs"][0]["tool"]["driver"]["rules"]}
    assert set(rules) == set(CODES)
    for code in CODES:
        assert rules[code]["help"]["markdown"] == (ROOT / "docs" / "diagnostics" / f"{code}.md").read_text().strip()
        assert not re.search(r"[*`\[]", rules[code]["fullDescription"]["text"])


def test_a_page_that_did_not_come_along_is_none() -> None:
    assert pages.page("no-such-code") is None


def test_fingerprints_stay_when_lines_move(check: Check) -> None:
    check("--sarif", "one.sarif")
    edit("import torch\n", "import torch\n\n# moved\n")
    check("--sarif", "two.sarif")
    one, two = (log(Path(f"{name}.sarif").read_text())["runs"][0]["results"][0] for name in ("one", "two"))
    assert one["partialFingerprints"] == two["partialFingerprints"]
    assert one["locations"] != two["locations"]


def test_what_cannot_be_checked_stands_in_the_log(check: Check) -> None:
    assert check("--sarif", "out.sarif", paths=("model.py", "none.py")) == 2
    (invocation,) = log(Path("out.sarif").read_text())["runs"][0]["invocations"]
    assert invocation["executionSuccessful"] is False
    assert "none.py" in invocation["toolExecutionNotifications"][0]["message"]["text"]


def test_only_new_findings_fail(check: Check, capsys: pytest.CaptureFixture[str]) -> None:
    assert check("--baseline", "known.json", "--write-baseline") == 0
    assert "1 finding in the baseline known.json." in capsys.readouterr().err
    edit("import torch\n", "import torch\n\n\n")
    assert check("--baseline", "known.json", "--fail-on", "break", "--sarif", "a.sarif") == 0
    assert "0 new findings, 1 in the baseline." in capsys.readouterr().err
    edit("    return x", "    print(x.sum())\n    return x")
    assert check("--baseline", "known.json", "--fail-on", "break", "--sarif", "b.sarif") == 1
    told = capsys.readouterr().err
    assert "new: model.py:8: graph-break GB1: It breaks." in told and "1 new finding, 1 in the baseline." in told
    states = [
        [one["baselineState"] for one in log(Path(name).read_text())["runs"][0]["results"]]
        for name in ("a.sarif", "b.sarif")
    ]
    assert states == [["unchanged"], ["unchanged", "new"]]
    assert check("--baseline", "known.json") == 0, "nothing is forbidden"


def test_a_baseline_behind_a_link_names_files_as_the_repository_does(check: Check, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    check("--baseline", str(tmp_path / "link" / "known.json"), "--write-baseline")
    assert {entry["file"] for entry in json.loads(Path("known.json").read_text())["findings"]} == {"model.py"}
    assert check("--baseline", "known.json", "--fail-on", "any") == 0


def test_what_is_mended_is_said(check: Check, capsys: pytest.CaptureFixture[str]) -> None:
    check("--baseline", "known.json", "--write-baseline")
    edit("    print(x)\n", "")
    assert check("--baseline", "known.json", "--fail-on", "any") == 0
    assert "1 entry of it fit nothing any more" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--write-baseline"], "--write-baseline needs --baseline FILE"),
        (["--baseline", "none.json"], "There is no baseline none.json"),
        (["--baseline", "model.py"], "not valid JSON"),
        (["--json", "--sarif", "-"], "both want standard output"),
        (["--sarif", "no/such/folder/x.sarif"], "The SARIF log cannot be written"),
    ],
)
def test_what_does_not_go_together_is_a_sentence(
    check: Check, capsys: pytest.CaptureFixture[str], options: list[str], sentence: str
) -> None:
    assert check(*options) == 2
    assert sentence in capsys.readouterr().err


def test_a_baseline_of_half_a_check_is_not_written(check: Check, capsys: pytest.CaptureFixture[str]) -> None:
    assert check("--baseline", "known.json", "--write-baseline", paths=("model.py", "none.py")) == 2
    assert "was not written" in capsys.readouterr().err and not Path("known.json").exists()


@pytest.mark.parametrize("text", [EMPTY, WITHOUT_INPUTS])
def test_files_with_nothing_to_compile_are_passed_over_when_that_is_allowed(check: Check, text: str) -> None:
    Path("other.py").write_text(text)
    assert check(paths=("other.py",)) == 2
    assert check("--allow-empty", paths=("other.py",)) == 0
    assert check("--allow-empty", "--fail-on", "break", paths=("other.py", "model.py")) == 1


def test_the_hook_for_pre_commit_fails_on_a_break_and_passes_over_other_files(check: Check) -> None:
    hooks = {hook["id"]: hook for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())}
    hook = hooks["inductoscope"]
    program, command, *options = [*shlex.split(hook["entry"]), *hook["args"]]
    assert (program, command, hook["types"]) == ("inductoscope", "check", ["python"])
    Path("other.py").write_text(EMPTY)
    assert check(*options, paths=("other.py",)) == 0
    assert check(*options, paths=("other.py", "model.py")) == 1
